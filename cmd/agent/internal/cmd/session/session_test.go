package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// terminal returns the IO of a terminal, with home as the agent's home and the
// working directory.
func terminal(home, input string) (s *cmdutil.IO, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &cmdutil.IO{
		In: strings.NewReader(input), Out: out, Err: errs, InTTY: true, OutTTY: true, ErrTTY: true, Cwd: home,
		Env: func(name string) string { return map[string]string{"AGENT_HOME": home}[name] },
	}, out, errs
}

// result is a tool result with the ID of its call.
type result struct {
	event.ToolResult
	call string
}

// save writes a session and returns the path of its log.
func save(tb testing.TB, home, id, cwd string, bodies ...event.Body) string {
	tb.Helper()
	dir := agent.SessionsDir(home)
	j, err := store.Create(dir, id, store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for i, body := range append([]event.Body{event.SessionStart{Cwd: cwd, Provider: "local", Model: "m"}}, bodies...) {
		e := event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Now(), Session: id, Required: true, Body: body}
		if r, ok := body.(result); ok {
			e.Call, e.Body = r.call, r.ToolResult
		}
		if err := j.Append(tb.Context(), e); err != nil {
			tb.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, id+".jsonl")
}

func question(text string) event.Body { return event.User{Content: model.TextParts(text)} }

func TestList(t *testing.T) {
	home := t.TempDir()
	s, out, errs := terminal(home, "")
	if err := (&listOptions{IO: s}).run(); err != nil || out.Len() > 0 || !strings.Contains(errs.String(), "No sessions of "+s.WorkDir("")) {
		t.Errorf("without sessions: %v, %q, %q", err, out, errs)
	}
	save(t, home, "here", s.WorkDir(""), question("Why?"))
	save(t, home, "elsewhere", "/elsewhere", question("Where?"))
	for all, want := range map[bool]int{false: 1, true: 2} {
		out.Reset()
		if err := (&listOptions{IO: s, all: all, json: true}).run(); err != nil {
			t.Fatal(err)
		}
		var list []listed
		if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != want {
			t.Errorf("all %t: %v, %d sessions, want %d", all, err, len(list), want)
		}
	}
}

func TestFork(t *testing.T) {
	home := t.TempDir()
	save(t, home, "one", home, question("1"), question("2"))
	s, out, _ := terminal(home, "")
	if err := (&forkOptions{IO: s, at: 2}).run(t.Context(), "on"); err != nil {
		t.Fatal(err)
	}
	fork := strings.TrimSpace(out.String())
	out.Reset()
	if err := (&showOptions{IO: s}).run(t.Context(), fork); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "Fork of:   one\n") || !strings.Contains(got, "\n1\n") || strings.Contains(got, "\n2\n") {
		t.Errorf("the fork is\n%s", got)
	}
}

func TestNotFound(t *testing.T) {
	home := t.TempDir()
	s, _, _ := terminal(home, "")
	for name, err := range map[string]error{
		"show":   (&showOptions{IO: s}).run(t.Context(), "none"),
		"export": (&exportOptions{IO: s, format: "json"}).run(t.Context(), "none"),
		"fork":   (&forkOptions{IO: s}).run(t.Context(), "none"),
		"delete": (&deleteOptions{IO: s, yes: true}).run(t.Context(), []string{"none"}),
		"repair": (&repairOptions{IO: s}).run(t.Context(), "none"),
	} {
		if cmdutil.ExitCode(err) != cmdutil.ExitError || !strings.Contains(fmt.Sprint(err), `"none"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeleteAsks(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "": false, "yesterday\n": false} {
		home := t.TempDir()
		save(t, home, "one", home)
		s, out, errs := terminal(home, answer)
		if err := (&deleteOptions{IO: s}).run(t.Context(), []string{"one"}); err != nil {
			t.Errorf("%q: %v", answer, err)
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

func TestRepair(t *testing.T) {
	home := t.TempDir()
	log := save(t, home, "one", home, question("1"))
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"v":1,"se`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		dryRun bool
		want   string
	}{
		{true, "2 records kept, 1 line (10 B) would be cut off.\n"},
		{false, "2 records kept, 1 line (10 B) moved to " + log + ".torn.\n"},
		{false, "Session one is intact.\n"},
	} {
		s, out, _ := terminal(home, "")
		if err := (&repairOptions{IO: s, dryRun: step.dryRun}).run(t.Context(), "one"); err != nil || !strings.HasSuffix(out.String(), step.want) {
			t.Errorf("%v, printed %q, want %q", err, out, step.want)
		}
	}
}

// TestMarkdownEscapes checks that nothing in a session can close the fold or
// the fence around it.
func TestMarkdownEscapes(t *testing.T) {
	home := t.TempDir()
	const evil = "```\n</details>\n````\n\x1b[31m\u202e"
	save(t, home, "one", "/w", question("A [link](x) and `code`"),
		event.Message{Content: model.Parts{
			model.Text{Text: "Two calls."},
			model.ToolCall{ID: "a", Name: "shell", Args: `{"command":"</summary>` + "`" + `"}`},
			model.ToolCall{ID: "b", Name: "odd", Args: "no JSON"},
			model.ToolCall{ID: "z", Name: "stray"},
		}},
		result{event.ToolResult{Name: "odd", Content: model.TextParts(evil), IsError: true}, "b"},
		result{event.ToolResult{Name: "shell", Content: model.Parts{model.Image{MediaType: "image/png", Bytes: 1500}}, Output: &event.Output{Path: "/o`ut", Bytes: 2000}}, "a"},
		result{event.ToolResult{Name: "stray", Content: model.TextParts("x"), Output: &event.Output{Text: "all of it"}}, "z"},
		event.Warning{Message: "<b>careful</b>\nnow"}, event.Steering{Source: "user", Content: model.TextParts("Stop.")},
		event.Message{Content: model.TextParts("Stopp"), Partial: true},
		event.SessionStart{Resumed: true, Provider: "p", Model: "q"},
		event.Message{Content: model.Parts{model.ToolCall{ID: "c", Name: "never"}}})
	s, out, _ := terminal(home, "")
	if err := (&exportOptions{IO: s, format: "markdown"}).run(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, want := range []string{
		"# A \\[link\\](x) and \\`code\\`\n", "- Directory: `/w`\n", "- Model: `local/m`\n",
		"<summary>odd no JSON (failed, 0s)</summary>\n\nArguments:\n\n```json\nno JSON\n```\n\nResult:\n\n`````\n```\n</details>\n````\n`````\n\n</details>\n",
		"<summary>shell &lt;/summary&gt;` (done, 0s)</summary>",
		"Full output (2.0 kB): ``/o`ut``", "[image image/png, 1.5 kB]", "all of it",
		"<summary>never (no result)</summary>\n\n</details>\n",
		"> ! \\<b>careful\\</b> now\n", "## You (steering)\n\nStop.\n", "> The answer is incomplete.\n", "*Resumed at ", " with `p/q`.*",
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

// BenchmarkList lists 1,000 sessions, of which a tenth is this directory's.
func BenchmarkList(b *testing.B) {
	home := b.TempDir()
	prompt := event.Prompt{Text: strings.Repeat("You are a coding agent.\n", 400)}
	for i := range 1000 {
		cwd := "/elsewhere"
		if i%10 == 0 {
			cwd = home
		}
		save(b, home, fmt.Sprintf("0198%04x-aaaa-7bbb-8ccc-%012x", i, i), cwd, question("Find out why the test fails"), prompt,
			event.Message{Content: model.TextParts(strings.Repeat("x", 10_000))})
	}
	b.ReportAllocs()
	for b.Loop() {
		s, out, _ := terminal(home, "")
		if err := (&listOptions{IO: s}).run(); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 101 {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}

// TestView serves the session of the directory that changed last, until the command is
// interrupted.
func TestView(t *testing.T) {
	home := t.TempDir()
	s, _, errs := terminal(home, "")
	save(t, home, "one", s.WorkDir(""), question("Why <so>?"))
	save(t, home, "elsewhere", "/elsewhere", question("Where?"))
	from, to := io.Pipe()
	s.Out = to
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- (&viewOptions{IO: s, noBrowser: true}).run(ctx, nil) }()
	url, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(strings.TrimSpace(url))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if text := string(body); !strings.Contains(url, "http://127.0.0.1:") || !strings.Contains(url, "/s/one/") || !strings.Contains(text, "<title>Why &lt;so&gt;?</title>") {
		t.Errorf("%s shows\n%s", url, text)
	}
	cancel()
	if err := <-done; err != nil || !strings.Contains(errs.String(), "Press Ctrl-C to stop.") {
		t.Errorf("%v, %s", err, errs)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := (&viewOptions{IO: s, flags: setup.Flags{Dir: "none"}}).run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no session was started in") || !strings.HasSuffix(err.Error(), "an ID from agent sessions list --all") {
		t.Errorf("without a session: %v", err)
	}
}
