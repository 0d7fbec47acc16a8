package root

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// personAt returns the IO of a terminal, with home as the agent's home.
func personAt(home, types string) (s *cmdutil.IO, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &cmdutil.IO{
		In: strings.NewReader(types), Out: out, Err: errs, InTTY: true, OutTTY: true, ErrTTY: true, Cwd: home,
		Env: func(name string) string { return map[string]string{"AGENT_HOME": home}[name] },
	}, out, errs
}

// keepSession saves a session.
func keepSession(tb testing.TB, home, id, cwd string, bodies ...event.Body) {
	tb.Helper()
	j, err := store.Create(agent.SessionsDir(home), id, store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for i, body := range append([]event.Body{event.SessionStart{Cwd: cwd, Provider: "local", Model: "m"}}, bodies...) {
		e := event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Now(), Session: id, Required: true, Body: body}
		if r, ok := body.(event.ToolResult); ok {
			e.Call = r.Code // these tests put the ID of the call there
			r.Code = ""
			e.Body = r
		}
		if err := j.Append(context.Background(), e); err != nil {
			tb.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		tb.Fatal(err)
	}
}

// TestCompletionsAreForThoseWhoAsk: no other command pays for them.
func TestCompletionsAreForThoseWhoAsk(t *testing.T) {
	for _, args := range [][]string{nil, {"version"}, {"exec", "__complete"}} {
		if completes(args) {
			t.Errorf("%q asks for completions", args)
		}
	}
	for _, args := range [][]string{{"__complete", ""}, {"__completeNoDesc", ""}} {
		if !completes(args) {
			t.Errorf("%q does not ask for completions", args)
		}
	}
}

// TestConfigListHidesKeys: in whatever form they stand there.
func TestConfigListHidesKeys(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{"providers": {"openai": {"apiKey": "sk-hidden-12345"}, "local": {"apiKey": "!echo hidden"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"config", "list", "--all"}, {"config", "list", "--json"}, {"config", "get", "providers.local.apiKey"}, {"config", "validate", "--json"}} {
		s, out, errs := personAt(home, "")
		if code := execute(t.Context(), args, s); code != cmdutil.ExitDone {
			t.Fatalf("%q: exit code %d: %s", args, code, errs)
		}
		if strings.Contains(out.String()+errs.String(), "hidden") {
			t.Errorf("%q shows a key: %s%s", args, out, errs)
		}
	}
}
