package root

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// personAt returns streams of a person at a terminal whose agent home is home.
func personAt(home, types string) (s *cmdutil.IO, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &cmdutil.IO{
		In: strings.NewReader(types), Out: out, Err: errs, InTTY: true, OutTTY: true, ErrTTY: true, Cwd: home,
		Env: func(name string) string { return map[string]string{"AGENT_HOME": home}[name] },
	}, out, errs
}

// keepSession writes a session down.
func keepSession(tb testing.TB, home, id, cwd string, bodies ...event.Body) {
	tb.Helper()
	j, err := store.Create(agent.SessionsDir(home), id, store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for i, body := range append([]event.Body{event.SessionStart{Cwd: cwd, Provider: "local", Model: "m"}}, bodies...) {
		e := event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Now(), Session: id, Required: true, Body: body}
		if r, ok := body.(event.ToolResult); ok {
			e.Call = r.Code // which these tests use for the call's id
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

func TestDeleteAsks(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "": false, "yesterday\n": false} {
		home := t.TempDir()
		keepSession(t, home, "one", home)
		s, out, errs := personAt(home, answer)
		if code := Run(t.Context(), []string{"sessions", "delete", "one"}, s); code != cmdutil.ExitDone {
			t.Errorf("%q: exit code %d: %s", answer, code, errs)
		}
		_, err := store.Stat(agent.SessionsDir(home), "one")
		if gone := err != nil; gone != want || strings.Contains(out.String(), "Deleted one.") != want {
			t.Errorf("%q: deleted %t, %s", answer, gone, out)
		}
		if !strings.Contains(errs.String(), "Permanently delete 1 session (one)? [y/N]") {
			t.Errorf("asked %q", errs)
		}
	}
}

// TestMarkdownCannotBeBrokenOutOf: what is in a session cannot end the fold or
// the fence that it stands in.
func TestMarkdownCannotBeBrokenOutOf(t *testing.T) {
	home := t.TempDir()
	const evil = "```\n</details>\n````\n\x1b[31m\u202e"
	keepSession(t, home, "one", "/w", event.User{Content: model.TextParts("A [link](x) and `code`")},
		event.Message{Content: model.Parts{
			model.Text{Text: "Two calls."},
			model.ToolCall{ID: "a", Name: "shell", Args: `{"command":"</summary>` + "`" + `"}`},
			model.ToolCall{ID: "b", Name: "odd", Args: "no JSON"},
			model.ToolCall{ID: "c", Name: "never"},
		}},
		event.ToolResult{Name: "odd", Code: "b", Content: model.TextParts(evil), IsError: true},
		event.ToolResult{Name: "shell", Code: "a", Content: model.Parts{model.Image{MediaType: "image/png", Bytes: 1500}}, Output: &event.Output{Path: "/o`ut", Bytes: 2000}},
		event.ToolResult{Name: "stray", Code: "z", Content: model.TextParts("x"), Output: &event.Output{Text: "all of it"}},
		event.Warning{Message: "<b>careful</b>\nnow"}, event.Steering{Source: "user", Content: model.TextParts("Stop.")},
		event.Message{Content: model.TextParts("Stopp"), Partial: true},
		event.SessionStart{Resumed: true, Provider: "p", Model: "q"})
	s, out, errs := personAt(home, "")
	if code := Run(t.Context(), []string{"sessions", "export", "one"}, s); code != cmdutil.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	got := out.String()
	for _, want := range []string{
		"# A \\[link\\](x) and \\`code\\`\n", "- Directory: `/w`\n", "- Model: `local/m`\n",
		"<summary>odd no JSON (failed, 0s)</summary>\n\nArguments:\n\n```json\nno JSON\n```\n\nResult:\n\n`````\n```\n</details>\n````\n`````\n\n</details>\n",
		"<summary>shell &lt;/summary&gt;` (done, 0s)</summary>",
		"The whole output (2.0 kB) is kept in ``/o`ut``.", "[image image/png, 1.5 kB]", "all of it",
		"<summary>never (no result)</summary>\n\n</details>\n",
		"> ! \\<b>careful\\</b> now\n", "## You (steering)\n\nStop.\n", "> The answer is incomplete.\n", "*Resumed at ", "`p/q`",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if n, m := strings.Count(got, "<details>"), strings.Count(got, "\n\n</details>\n"); n != 4 || m != n {
		t.Errorf("%d folds begin, %d end", n, m)
	}
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Error("a control character came through")
	}
	if t.Failed() {
		t.Log(got)
	}
}

// BenchmarkSessionsList lists 1,000 sessions, of which a tenth is this
// directory's, by the command.
func BenchmarkSessionsList(b *testing.B) {
	home := b.TempDir()
	prompt := event.Prompt{Text: strings.Repeat("You are a coding agent.\n", 400)}
	for i := range 1000 {
		cwd := "/elsewhere"
		if i%10 == 0 {
			cwd = home
		}
		keepSession(b, home, fmt.Sprintf("0198%04x-aaaa-7bbb-8ccc-%012x", i, i), cwd,
			event.User{Content: model.TextParts("Find out why the test fails")}, prompt,
			event.Message{Content: model.TextParts(strings.Repeat("x", 10_000))})
	}
	b.ReportAllocs()
	for b.Loop() {
		s, _, _ := personAt(home, "")
		var lines countLines
		s.Out = &lines
		if code := Run(b.Context(), []string{"sessions", "list"}, s); code != cmdutil.ExitDone || lines != 101 {
			b.Fatalf("exit code %d, %d lines", code, lines)
		}
	}
}

type countLines int

func (c *countLines) Write(p []byte) (int, error) {
	*c += countLines(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

var _ io.Writer = (*countLines)(nil)

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
		if code := Run(t.Context(), args, s); code != cmdutil.ExitDone {
			t.Fatalf("%q: exit code %d: %s", args, code, errs)
		}
		if strings.Contains(out.String()+errs.String(), "hidden") {
			t.Errorf("%q shows a key: %s%s", args, out, errs)
		}
	}
}
