package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// plainRun is a plain session in the background.
type plainRun struct {
	t    *testing.T
	in   *io.PipeWriter
	out  safeBuffer
	next Next
	err  error
	done chan struct{}
}

func startPlain(t *testing.T, ctx context.Context, o Options) *plainRun {
	t.Helper()
	r := &plainRun{t: t, done: make(chan struct{})}
	o.In, r.in = io.Pipe()
	o.Out, o.Env = &r.out, testVars(nil)
	go func() {
		defer close(r.done)
		r.next, r.err = Run(ctx, o)
	}()
	t.Cleanup(func() {
		_ = r.in.Close()
		r.wait()
	})
	return r
}

func (r *plainRun) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatalf("nobody reads %q: %v\n%s", line, err, r.out.String())
	}
}

func (r *plainRun) sees(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		eventually(r.t, func() string { return fmt.Sprintf("waiting for %q in\n%s", text, r.out.String()) },
			func() bool { return strings.Contains(r.out.String(), text) })
	}
}

func (r *plainRun) wait() (Next, error) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(coretest.Patience):
		r.t.Fatalf("Run does not end:\n%s", r.out.String())
	}
	return r.next, r.err
}

func TestPlain(t *testing.T) {
	t.Parallel()
	saver := ruleSaver{coretest.AskAll, make(chan string, 1)}
	s, asker := mustOpen(t, act{policy: saver, turns: []coretest.Turn{
		{Text: "I build it.", Calls: coretest.CallTools(toolCall("shell", `{"command":"make"}`)).Calls},
		coretest.CallTools(toolCall("shell", `{"command":"make test"}`)),
		{Text: "It did \x1b[31mnot\x1b[0m run."},
	}})
	var saved []string
	r := startPlain(t, t.Context(), Options{
		Session: s, Asker: asker, Commands: testCommands, SaveHistory: func(e string) { saved = append(saved, e) },
	})
	r.send("build it")
	r.sees("I build it.", "● shell make", "? Run `make`?", "commands are asked about", "always: add shell(make)", "  w: wider: shell(make *)", "Enter y, s, a, w, n or r (an empty line: no): ")
	r.send("what")
	r.sees("! not one of the choices")
	r.send("w")
	r.sees("always: add shell(make *)", "w: narrower: shell(make)")
	r.send("w")
	r.send("a")
	if rule := <-saver.saved; rule != "shell(make)" {
		t.Errorf("saved rule %q", rule)
	}
	r.sees("✓ shell make · ran make", "? Run `make test`?")
	r.send("n not today")
	r.sees("→ no: not today", "It did not run.")
	r.send("/modle")
	r.sees("unknown command /modle; did you mean /model?")
	r.send("/model fake-2")
	r.sees("The model is fake-2.")
	r.send("/panic")
	r.sees("/panic: panic: broken command")
	r.send("/quit")
	if next, err := r.wait(); err != nil || next.Kind != NextQuit {
		t.Errorf("Run = %+v, %v; want quit", next, err)
	}
	lacks(t, r.out.String(), "\x1b", "\r")
	if got := strings.Join(saved, "|"); got != "build it|/modle|/model fake-2|/panic|/quit" {
		t.Errorf("history %q: answers to questions do not belong there", got)
	}
}

func TestPlainQuestions(t *testing.T) {
	t.Parallel()
	form := `{"kind":"form","schema":"{\"properties\":{\"age\":{\"type\":\"integer\"},\"ok\":{\"type\":\"boolean\"}}}"}`
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		coretest.CallTools(toolCall("question", form)),
		coretest.CallTools(toolCall("question", `{"kind":"url"}`)),
		coretest.CallTools(toolCall("question", `{"kind":"confirm"}`)),
		coretest.Say("All asked."),
	}})
	r := startPlain(t, t.Context(), Options{Session: s, Asker: asker, Prompt: "ask me"})
	r.sees("> ask me", "age [integer] (optional) (field 1 of 2)")
	r.send("old")
	r.sees("! enter a number")
	r.send("7")
	r.sees("ok [y/n]")
	r.send("y")
	r.sees("✓ question", "https://example.org/x", "done")
	r.send("y")
	r.sees("? The tool asks → yes")
	eventually(t, r.out.String, func() bool { return strings.Count(r.out.String(), "? The tool asks\n") == 3 })
	r.send("")
	r.sees("? The tool asks → no", "All asked.")
	_ = r.in.Close()
	if next, err := r.wait(); err != nil || next.Kind != NextQuit {
		t.Errorf("Run at the end of the input = %+v, %v; want quit", next, err)
	}
	var got []string
	for _, e := range coretest.Collect(t, closed(s), nil).Drain(t) {
		if strings.Contains(fmt.Sprint(e.Body), "values=") {
			got = append(got, fmt.Sprint(e.Body))
		}
	}
	if len(got) != 3 || !strings.Contains(got[0], `values={"age":7,"ok":true}`) {
		t.Errorf("the tool got %q", got)
	}
}

func closed(s acting) acting {
	_ = s.Close()
	return s
}

func TestPlainSteersAndShell(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	provider := []coretest.Turn{
		{Text: "working\n\n", Calls: coretest.CallTools(toolCall("shell", `{"command":"one"}`)).Calls, Block: release},
		{Text: "turned around"},
		{Text: "last"},
	}
	queue := NewQueue()
	s, asker := mustOpen(t, act{turns: provider, queue: queue})
	r := startPlain(t, t.Context(), Options{
		Session: s, Asker: asker, Commands: testCommands, Queue: queue,
		Shell: func(_ context.Context, command string, out io.Writer) error {
			fmt.Fprintf(out, "output of %s\nunfinished", command)
			return errors.New("exit status 3")
		},
		Expand: func(_ context.Context, text string) (core.Input, []string, error) {
			if strings.Contains(text, "@missing") {
				return core.Input{}, nil, errors.New("no such file: missing")
			}
			return core.TextInput("expanded: " + text), []string{"read a file"}, nil
		},
	})
	r.send("go")
	r.sees("working")
	r.send("turn around")
	r.sees("↳ queued")
	close(release)
	r.sees("✓ shell one", "> turn around", "turned around")
	r.send("!list it")
	r.sees("  output of list it\n", "  unfinished\n", "✗ exit status 3", "The model sees this with your next message.")
	r.send("look at @missing")
	r.sees("✗ no such file: missing", "Not sent: look at @missing")
	r.send("and now?")
	r.sees("last")
	r.send("/new")
	if next, err := r.wait(); err != nil || next.Kind != NextNew {
		t.Errorf("Run = %+v, %v; want a new session", next, err)
	}
	out := r.out.String()
	if n := strings.Count(out, "output of list it"); n != 1 {
		t.Errorf("the command's output is shown %d times:\n%s", n, out)
	}
	if n := strings.Count(out, "read a file"); n != 3 {
		t.Errorf("what Expand says is shown %d times, want once for each message:\n%s", n, out)
	}
}

// TestPlainOffers: a text that a command gives back, as /rewind does, is sent by an empty
// line; a command leaves it, another message takes its place.
func TestPlainOffers(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{coretest.Say("first"), coretest.Say("second")}})
	back := func(context.Context, string) (Result, error) { return Result{Draft: "taken back\nin full"}, nil }
	r := startPlain(t, t.Context(), Options{Session: s, Asker: asker, Commands: func() []Command {
		return append(testCommands(), Command{Name: "back", Run: back})
	}})
	r.send("/back")
	r.sees("Not sent: taken back\n  in full\n  Press Enter to send this, or enter another message.")
	r.send("/model other")
	r.sees("The model is other.")
	r.send("")
	r.sees("first")
	r.send("/back")
	eventually(t, r.out.String, func() bool { return strings.Count(r.out.String(), "Not sent:") == 2 })
	r.send("instead")
	r.sees("second")
	r.send("") // nothing is offered any more
	r.send("/quit")
	r.wait()
	var sent []string
	for _, e := range coretest.Collect(t, closed(s), nil).Drain(t) {
		if b, ok := e.Body.(event.User); ok {
			sent = append(sent, b.Content.Text())
		}
	}
	if got := strings.Join(sent, "|"); got != "taken back\nin full|instead" {
		t.Errorf("sent %q", got)
	}
}

func TestPlainReopens(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{}) // no turns: the model fails permanently
	r := startPlain(t, t.Context(), Options{Session: s, Asker: asker})
	r.send("hello")
	r.sees("INVALID_REQUEST", "The session is closed. Your next message reopens it.")
	r.send("once more")
	if next, err := r.wait(); err != nil || next != (Next{Kind: NextResume, Session: s.ID(), Prompt: "once more"}) {
		t.Errorf("Run = %+v, %v; want the session resumed with the prompt", next, err)
	}
}

func TestPlainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{coretest.CallTools(toolCall("wait", `{}`))}})
	ctx, cancel := context.WithCancelCause(context.Background())
	r := startPlain(t, ctx, Options{Session: s, Asker: asker})
	r.send("go")
	r.sees("● wait")
	gone := errors.New("the host is going")
	cancel(gone)
	if _, err := r.wait(); !errors.Is(err, gone) {
		t.Errorf("Run = %v, want the cause of its context", err)
	}
	eventually(t, func() string { return "the work is not cancelled" }, func() bool { return s.Now().Run == "" })
}

func TestPlainOutputClosed(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{})
	in, keep := io.Pipe()
	defer keep.Close()
	r, w := io.Pipe()
	_ = r.Close()
	_, err := Run(t.Context(), Options{In: in, Out: w, Session: s, Asker: asker, Env: testVars(nil), Welcome: "Hello."})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Run = %v, want that the output cannot be written", err)
	}
}

// TestTranscript formats a session's events, of which two calls overlap.
func TestTranscript(t *testing.T) {
	tr := NewTranscript("/ws", false)
	var lines []string
	for _, e := range []event.Event{
		{Body: event.SessionStart{}},
		{Body: event.Message{Content: model.TextParts("I'll look.")}},
		{Call: "a", Body: event.ToolUse{Name: "shell", Args: `{"command":"ls\n /ws/sub"}`}},
		{Call: "b", Body: event.ToolUse{Name: "grep", Args: `{"pattern":"x"}`}},
		{Body: event.Question{QID: "q", Title: "Allow shell in /ws/sub?"}},
		{Body: event.Answer{QID: "q", Choice: "once"}},
		{Call: "b", Body: event.ToolResult{Name: "grep", Content: model.TextParts("no matches")}},
		{Call: "a", Body: event.ToolResult{Name: "shell", Content: model.TextParts("/ws/a\nb\n"), DurationMS: 12}},
		{Call: "c", Body: event.ToolUse{Name: "fly"}},
		{Call: "c", Body: event.ToolResult{Name: "fly", Content: model.TextParts("Unknown tool: fly"), IsError: true}},
		{Body: event.Warning{Message: "nearly over"}},
		{Body: event.Idle{}},
	} {
		lines = append(lines, tr.Lines(e)...)
	}
	want := `● shell ls sub
● grep x
? Allow shell in sub? → yes, once
✓ grep x · no matches · 0 ms
✓ shell ls sub · 2 lines · 12 ms
  a
  b
● fly
✗ fly · Unknown tool: fly · 0 ms
! nearly over`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPlainMarkdown: answers are rendered, for a screen reader: no marks of
// Markdown, no tables of characters, no line breaks within a paragraph.
func TestPlainMarkdown(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		{Text: "Some **bold** " + strings.Repeat("word ", 30) + "end.\n\n| name | size |\n|---|---|\n| a.go | 10 |\n"},
		coretest.CallTools(toolCall("ask_user", `{"question":"Which colour?","options":["red","green"]}`)),
		coretest.Say("the end"),
	}})
	r := startPlain(t, t.Context(), Options{Session: s, Asker: asker, Welcome: "**agent** `here`"})
	r.sees("agent `here`\n")
	r.send("go")
	r.sees("Some bold word", "word end.\n", "name: a.go\nsize: 10\n")
	r.send("ask")
	r.sees("? Which colour?\n  1: red\n  2: green\n  3: something else\nEnter 1, 2 or 3 (an empty line: no answer): ")
	r.send("Green")
	r.sees("? Which colour? → green\n", "the end")
	lacks(t, r.out.String(), "**", "|")
}
