package permission

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// streams returns the IO of a non-interactive command in a temporary directory,
// which is also the agent's home.
func streams(t *testing.T) (s *cmdutil.IO, out *bytes.Buffer) {
	t.Helper()
	out = &bytes.Buffer{}
	dir := t.TempDir()
	return &cmdutil.IO{
		In: strings.NewReader(""), Out: out, Err: out, Cwd: dir,
		Env: func(name string) string { return map[string]string{"AGENT_HOME": dir}[name] },
	}, out
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		options callOptions
		code    int
		want    string
	}{
		{callOptions{tool: "shell", args: `{"command": "git push"}`}, cmdutil.ExitDone, "ask\n  rule:   mode default"},
		{callOptions{tool: "shell", args: `{"command": "git push"}`, headless: true}, cmdutil.ExitDone, "nobody can approve it\n"},
		{callOptions{tool: "shell", args: `{"cmd": "git push"}`}, cmdutil.ExitUsage, "--args: "},
		{callOptions{tool: "fly", args: "{}"}, cmdutil.ExitError, `no tool "fly"`},
		{callOptions{args: "{}"}, cmdutil.ExitUsage, "--tool is required"},
	} {
		s, out := streams(t)
		tt.options.IO = s
		err := (&checkOptions{tt.options}).run(t.Context())
		if err != nil {
			fmt.Fprintln(out, err)
		}
		if cmdutil.ExitCode(err) != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("--tool %q --args %s: exit code %d, want %d; printed %q, want %q", tt.options.tool, tt.options.args, cmdutil.ExitCode(err), tt.code, out, tt.want)
		}
	}
}

// TestTestReadsTables checks that a mistake in a table is named and nothing is
// tested.
func TestTestReadsTables(t *testing.T) {
	for table, want := range map[string]string{
		"[]":                        "t.yaml has no cases",
		"a: b":                      "t.yaml: expected a list of cases",
		"- {command: a, wnat: ask}": "t.yaml: yaml: unmarshal errors: line 1: field wnat is unknown",
		"- {want: ask}":             "t.yaml:1: tool is missing",
		"- {command: a, want: yes}": `t.yaml:1: want is "yes": expected allow, ask or deny`,
		"- {tool: fly, command: a}": "t.yaml:1: command is short for tool shell",
		"\n- {command: a, want: ask, headless: true}": "t.yaml:2: want is ask",
		`{"command": "a", "wnat": "ask"}`:             `t.yaml:1:18: unknown key "wnat"`,
	} {
		s, out := streams(t)
		if err := os.WriteFile(filepath.Join(s.Cwd, "t.yaml"), []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
		err := (&testOptions{IO: s}).run(t.Context(), "t.yaml")
		if cmdutil.ExitCode(err) != cmdutil.ExitUsage || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v, want %q; printed %q", table, err, want, out)
		}
	}
}

func TestLog(t *testing.T) {
	s, out := streams(t)
	if err := (&logOptions{IO: s}).run(t.Context(), nil); cmdutil.ExitCode(err) != cmdutil.ExitError || !strings.Contains(err.Error(), "no session of "+s.WorkDir("")) {
		t.Errorf("without a session: %v", err)
	}
	j, err := store.Create(agent.SessionsDir(s.Cwd), "one", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range []event.Body{
		event.SessionStart{Cwd: s.WorkDir("")},
		event.Permission{Tool: "read_file", Decision: "allow", Decider: "policy", Rule: "mode default"},
		event.Permission{Tool: "shell", Decision: "deny", Decider: "person", Rule: "mode default"},
	} {
		if err := j.Append(t.Context(), event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Now(), Session: "one", Required: true, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for denied, want := range map[bool]int{false: 2, true: 1} {
		out.Reset()
		if err := (&logOptions{IO: s, denied: denied, json: true}).run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var list []loggedDecision
		if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != want || list[want-1].Decider != "person" {
			t.Errorf("denied %t: %v, %+v, want %d decisions", denied, err, list, want)
		}
	}
}
