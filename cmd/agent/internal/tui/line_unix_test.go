//go:build unix

package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

func TestLineAnswers(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		{Text: "# Title\n\nSome **bold** words.\n\n- one\n- two\n\n```go\nx := 1\n```\n"},
		{Text: "Second \x1b]0;evil\x07answer\x1b[2J.\x9b5n \u202eevil"},
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Status: func() Status { return Status{Model: "fake-1", Mode: "default"} }})
	c.wait("fake-1 · default", ">")
	c.send("hello\r")
	c.wait("> hello", "# Title", "Some bold words.", "• one", "• two", "  x := 1")
	c.send("again\r")
	c.wait("> again", "Second answer.\uFFFD5n evil")
	r.quit(c)
	c.see(func(v *vt.Terminal) {
		if v.Title != "" {
			t.Errorf("the terminal's title became %q", v.Title)
		}
		if !v.Styled {
			t.Error("no colours on a terminal that has them")
		}
	})
}

// lineUser answers at a session on a terminal.
type lineUser struct {
	titles
	c *console
}

func (p *lineUser) Answer(choice core.Choice) error {
	if choice == "" {
		p.c.send(keyEsc)
		return nil
	}
	p.c.rested.Add(int64(pause))
	p.c.send(keyOf(choice))
	return nil
}

func TestLineAsker(t *testing.T) {
	t.Parallel()
	coretest.TestAsker(t, func(t *testing.T) (core.Asker, coretest.User) {
		s, asker := mustOpen(t, act{})
		c := newConsole(t, 80, 24)
		r := c.start(context.Background(), Options{Session: s, Asker: asker})
		t.Cleanup(func() {
			c.send(keyCtrlD)
			if _, err := r.wait(t); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		return asker, &lineUser{titles{c.screen, map[string]bool{}}, c}
	})
}

func TestLinePermission(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, keys string
		want       []string
		asked      int // number of questions about the same call
		saved      string
	}{
		{"once", "y", []string{"→ yes, once", "✓ shell make"}, 2, ""},
		{"session", "s", []string{"→ yes, for this session", "✓ shell make"}, 1, ""},
		{"always", "a", []string{"→ yes, always: shell(make)", "✓ shell make"}, 1, "shell(make)"},
		{"always wider", "wa", []string{"→ yes, always: shell(make *)", "✓ shell make"}, 1, "shell(make *)"},
		{"session wider and back", "wws", []string{"→ yes, for this session: shell(make)", "✓ shell make"}, 1, ""},
		{"deny", "n", []string{"→ no", "✗ shell make", "Permission denied: the user denied it\n"}, 2, ""},
		{"deny with a reason", "rtry it dry\r", []string{"→ no: try it dry", "✗ shell make"}, 2, ""},
		{"with the arrows", keyDown + "\r", []string{"→ yes, for this session", "✓ shell make"}, 1, ""},
		{"back from the reason", "rbecause", nil, 2, ""},
		{"escape", keyEsc, []string{"→ no", "✗ shell make"}, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			saver := ruleSaver{coretest.AskAll, make(chan string, 2)}
			s, asker := mustOpen(t, act{policy: saver, turns: []coretest.Turn{
				coretest.CallTools(toolCall("shell", `{"command":"make"}`)),
				coretest.CallTools(toolCall("shell", `{"command":"make"}`)),
				coretest.Say("the end"),
			}})
			c := newConsole(t, 80, 24)
			r := c.start(t.Context(), Options{Session: s, Asker: asker})
			c.send("go\r")
			c.wait("? Run `make`?", "commands are asked about", "y yes, once", "s yes, for this session: shell(make)", "always: add shell(make)", "w wider: shell(make *)", "n no", "r no, with a reason")
			c.send(tt.keys)
			if tt.name == "back from the reason" {
				c.wait("Reason?", "> because")
				c.send(keyEsc)
				c.gone("Reason?")
				c.send("n")
				c.wait("→ no")
			}
			if len(tt.want) > 0 {
				c.wait(tt.want...)
			}
			if tt.asked == 2 {
				c.wait("? Run `make`?", "y yes, once")
				c.send("n")
			}
			c.wait("the end")
			if tt.saved != "" {
				if got := <-saver.saved; got != tt.saved {
					t.Errorf("saved rule %q, want %q", got, tt.saved)
				}
			}
			r.quit(c)
		})
	}
}

func TestLineQuestionWaitsForTyping(t *testing.T) {
	t.Parallel()
	ask := make(chan struct{})
	s, asker := mustOpen(t, act{policy: coretest.AskAll, turns: []coretest.Turn{
		{Calls: coretest.CallTools(toolCall("shell", `{"command":"make"}`)).Calls, Block: ask},
		coretest.Say("the end"),
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.send("go\r")
	c.wait("> go")
	// The question appears while the user types, so that the next letter is no answer.
	c.stopClock()
	c.send("try sly way")
	eventually(t, c.screen, func() bool { return strings.Contains(c.screen(), "> try sly way") })
	close(ask)
	c.wait("? Run `", "(unsent: try sly way")
	eventually(t, c.screen, func() bool { return strings.Contains(c.screen(), "press a key, or Enter to answer") })
	lacks(t, c.all(), "→ yes, once", "→ yes, for this session")
	c.send("y")
	c.wait("→ yes, once", "the end", "> try sly way")
	c.send(keyCtrlC) // clears the input
	c.gone("try sly way")
	r.quit(c)
}

func TestLineForm(t *testing.T) {
	t.Parallel()
	form := `{"kind":"form","schema":"{\"properties\":{\"age\":{\"type\":\"integer\"},\"color\":{\"type\":\"string\",\"enum\":[\"red\",\"green\"]}}}"}`
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		coretest.CallTools(toolCall("question", form)), coretest.CallTools(toolCall("question", `{"kind":"url"}`)), coretest.Say("the end"),
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.send("go\r")
	c.wait("? The tool asks", "age [integer] (optional) (field 1 of 2)")
	c.send("x\r")
	c.wait("enter a number")
	c.send("\x7f41\r")
	c.wait("color [1 red, 2 green]")
	c.send("2\r")
	c.wait("https://example.org/x", "y done")
	c.send("y")
	c.wait("the end")
	r.quit(c)
	var results []string
	for _, e := range coretest.Collect(t, closed(s), nil).Drain(t) {
		results = append(results, fmt.Sprint(e.Body))
	}
	has(t, strings.Join(results, "\n"), `choice=yes values={"age":41,"color":"green"}`)
}

func TestLineSteers(t *testing.T) {
	t.Parallel()
	release, queue := make(chan struct{}), NewQueue()
	s, asker := mustOpen(t, act{queue: queue, turns: []coretest.Turn{
		{Text: "working", Calls: coretest.CallTools(toolCall("shell", `{"command":"one"}`)).Calls, Block: release},
		{Text: "turned around", Block: release},
		{Text: "and again"},
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Queue: queue})
	c.send("go\r")
	c.wait("working")
	c.send("turn around\r")
	c.wait("↳ queued: turn around")
	eventually(t, c.screen, queue.settled)
	release <- struct{}{}
	c.wait("> turn around", "turned around")
	c.gone("↳ queued")
	// A message that is too late for the last round starts another one.
	c.send("once more\r")
	c.wait("↳ queued: once more")
	eventually(t, c.screen, queue.settled)
	release <- struct{}{}
	c.wait("> once more", "and again")
	c.gone("↳ queued")
	r.quit(c)
}

// TestLineQueueOutlivesAFailure queues messages for a model that then fails: they
// wait, in their order, can be edited, and come before what is entered later.
func TestLineQueueOutlivesAFailure(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		{Text: "working", Block: release, Err: &model.Error{Code: model.CodeNetwork, Message: "the service is down"}},
		{Text: "answered all"},
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Commands: testCommands})
	c.send("go\r")
	c.wait("working")
	c.send("first\r")
	c.wait("↳ queued: first")
	c.send("secnd\r")
	c.wait("↳ queued: secnd")
	close(release)
	c.wait("the service is down", "Not sent yet: Enter sends, Alt+Up edits")
	c.send("\x1b[1;3A") // Alt+Up
	c.gone("↳ queued: secnd")
	c.send("\x7f\x7fond\r")
	c.wait("answered all")
	c.gone("↳ queued")
	var users []string
	for _, m := range s.Messages() {
		if m.Role == model.RoleUser {
			users = append(users, m.Parts.Text())
		}
	}
	if got := strings.Join(users, "|"); got != "go|first|second" && got != "go|firstsecond" {
		t.Errorf("the model got %q; want go, first, second", got)
	}
	r.quit(c)
}

// TestLineMessageAfterAStop enters messages before and after the stop of work: the
// second one says that both are wanted, and they are sent when the work has ended.
func TestLineMessageAfterAStop(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		coretest.CallTools(toolCall("wait", `{}`)),
		coretest.Say("here I am"),
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.send("go\r")
	c.wait("tick two")
	c.send("first\r")
	c.wait("↳ queued: first")
	c.send(keyCtrlC)
	c.wait("stopping after the current step")
	c.send("second\r")
	c.wait("↳ queued: second")
	c.send(keyCtrlC)
	c.wait("> first", "> second", "here I am")
	c.gone("↳ queued")
	r.quit(c)
}

// TestLineNewSessionAsksAboutTheQueue leaves a session whose queue holds messages.
func TestLineNewSessionAsksAboutTheQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key  string
		next NextKind
		left int
	}{{"1", NextNew, 0}, {"2", NextNew, 1}, {"n", NextQuit, 0}} {
		s, asker := mustOpen(t, act{turns: []coretest.Turn{{Text: "working", Block: make(chan struct{})}}})
		queue := NewQueue()
		c := newConsole(t, 80, 24)
		r := c.start(t.Context(), Options{Session: s, Asker: asker, Commands: testCommands, Queue: queue})
		c.send("go\r")
		c.wait("working")
		c.send("later\r")
		c.wait("↳ queued: later")
		c.send(keyEsc)
		c.wait("Not sent yet")
		c.send("/new\r")
		c.wait("Leave this session? Not sent yet: 1 message.", "1 yes, without them", "2 yes, with them", "n no")
		c.send(tt.key)
		if tt.next == NextQuit {
			c.gone("Leave this session?")
			r.quit(c)
		} else if next, err := r.wait(t); err != nil || next.Kind != tt.next {
			t.Errorf("%s: Run = %+v, %v; want %s", tt.key, next, err, tt.next)
		}
		if n := len(queue.labels()); n != tt.left {
			t.Errorf("%s: %d messages are left in the queue, want %d", tt.key, n, tt.left)
		}
	}
}

// TestLineTypeAhead: what is typed before the session takes keys is in the input box, and
// its echo is not in front of the first line.
func TestLineTypeAhead(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{})
	c := newConsole(t, 80, 24)
	c.send("early")
	c.wait("early")
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Welcome: "hello there"})
	c.wait("hello there", "> early")
	if first, _, _ := strings.Cut(c.screen(), "\n"); first != "hello there" {
		t.Errorf("the first line is %q", first)
	}
	c.send(keyCtrlC)
	c.gone("early")
	r.quit(c)
}

func TestLineCtrlC(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		{Text: "thinking", Block: make(chan struct{})},
		coretest.CallTools(toolCall("wait", `{}`)),
		coretest.Say("here I am"),
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.wait(">")
	c.send("some text" + keyCtrlC)
	c.gone("some text")
	c.send("one\r")
	c.wait("thinking", "Ctrl-C stops")
	c.send(keyCtrlC)
	c.wait("! cancelled: interrupted by Ctrl-C")
	c.gone("Ctrl-C stops")
	c.send("two\r")
	c.wait("wait", "tick two")
	c.send(keyEsc)
	c.wait("stopping after the current step · Ctrl-C again aborts")
	c.send(keyCtrlC)
	c.wait("! cancelled: interrupted by Esc", "✗ wait")
	c.send(keyCtrlC)
	c.wait("Ctrl-C again quits")
	c.send("x" + keyCtrlC) // a key in between
	c.gone("Ctrl-C again quits")
	c.send("go on\r")
	c.wait("here I am")
	r.quit(c)
}

func TestLineCtrlCTwiceLeaves(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.wait(">")
	c.send(keyCtrlC)
	c.wait("Ctrl-C again quits")
	c.send(keyCtrlC)
	if next, err := r.wait(t); err != nil || next.Kind != NextQuit {
		t.Errorf("Run = %+v, %v; want quit", next, err)
	}
	c.restored()
}

// TestLineStaleSuggestion: a list of files for the beginning of a word does not
// change what was typed further, and Enter sends it.
func TestLineStaleSuggestion(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{coretest.Say("seen")}})
	c := newConsole(t, 80, 24)
	late := make(chan struct{})
	answer := sync.OnceFunc(func() { close(late) })
	defer answer()
	r := c.start(t.Context(), Options{
		Session: s, Asker: asker,
		Complete: func(prefix string) []string {
			if prefix != "ma" {
				<-late
				return nil
			}
			return []string{"main.go", "main_test.go"}
		},
	})
	c.wait(">")
	c.send("see @ma")
	c.wait("› @main.go")
	c.send("in_test.go\r")
	c.wait("> see @main_test.go", "seen")
	answer()
	r.quit(c)
}

func TestLineEditing(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{coretest.Say("first answer"), coretest.Say("second answer"), coretest.Say("third answer"), coretest.Say("last answer")}})
	c := newConsole(t, 80, 24)
	var saved []string
	r := c.start(t.Context(), Options{
		Session: s, Asker: asker, Commands: testCommands, History: []string{"old entry", "newer entry"},
		SaveHistory: func(e string) { saved = append(saved, e) },
		Complete: func(prefix string) []string {
			var out []string
			for _, f := range []string{"main.go", "main_test.go", "README.md"} {
				if strings.HasPrefix(f, prefix) {
					out = append(out, f)
				}
			}
			return out
		},
	})
	c.wait(">")
	c.send("first\\\rsecond\x1b\rthird\nfourth\r")
	c.wait("> first\n  second\n  third\n  fourth\n", "first answer")
	c.gone("Ctrl-C stops")
	c.send(keyUp)
	c.wait("> first\n  second\n  third\n  fourth\n")
	c.send("\x15\x03") // Ctrl-U, then Ctrl-C for the lines above
	c.send(keyUp + keyUp + keyUp)
	c.wait("> old entry")
	c.send(keyDown)
	c.wait("> newer entry")
	c.send(keyCtrlC + "\x12old")
	c.wait("> old entry", "search: old")
	c.send("\r")
	c.wait("second answer")
	c.gone("Ctrl-C stops")
	c.send("one two three\x17\x01\x1bfX\r") // Ctrl-W, Ctrl-A, Alt-F
	c.wait("> oneX two", "third answer")
	c.gone("Ctrl-C stops")
	c.send("/mo")
	c.wait("/model", "/mode ")
	c.send("d" + keyTab)
	c.wait("/mode")
	c.send(keyTab + keyTab)
	c.wait("› /mode")
	c.send(keyCtrlC + "see @ma")
	c.wait("> see @ma", "› @main.go", "  @main_test.go")
	c.send(keyDown)
	c.wait("› @main_test.go")
	c.send(keyTab)
	c.wait("> see @main_test.go")
	c.send("\r")
	c.wait("last answer")
	c.send("/mdoe\r")
	c.wait("unknown command /mdoe; did you mean /mode?")
	c.send("/mode\r")
	c.wait("/mode: there is none")
	r.quit(c)
	if len(saved) != 7 || saved[0] != "first\nsecond\nthird\nfourth" {
		t.Errorf("history %q", saved)
	}
}

func TestLinePaste(t *testing.T) {
	t.Parallel()
	provider := coretest.Model(coretest.Say("got it"))
	s, asker := mustOpen(t, act{provider: provider})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.wait(">")
	var paste strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&paste, "line %d of a long paste\r", i)
	}
	c.send("before \x1b[200~" + paste.String() + "\x1b[201~ behind \x1b[200~short\rpaste\x1b[201~")
	c.wait("> before [pasted 10,000 lines] behind short\n  paste")
	c.send("\r")
	c.wait("got it")
	text := provider.Requests()[0].Messages[0].Parts.Text()
	if n := strings.Count(text, "\n"); n != 10_001 || !strings.HasPrefix(text, "before line 0 of") || !strings.HasSuffix(text, "line 9999 of a long paste\n behind short\npaste") {
		t.Errorf("the model got %d lines: %.60q … %q", n, text, text[max(0, len(text)-60):])
	}
	c.send("x\x1b[200~" + strings.Repeat("y\r", 20) + "\x1b[201~")
	c.wait("x[pasted 20 lines]")
	c.send("\x7f") // deletes the whole placeholder
	c.gone("[pasted")
	c.wait("> x")
	c.send("\x15") // Ctrl-U: Ctrl-C would cancel if the answer has only just ended
	r.quit(c)
}

func TestLineShellAndExpand(t *testing.T) {
	t.Parallel()
	provider := coretest.Model(coretest.Say("I saw it"))
	s, asker := mustOpen(t, act{provider: provider})
	more := make(chan struct{})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{
		Session: s, Asker: asker,
		Shell: func(ctx context.Context, command string, out io.Writer) error {
			fmt.Fprintf(out, "\x1b[31mfirst of %s\x1b[0m\n", command)
			select {
			case <-more:
			case <-ctx.Done():
				return ctx.Err()
			}
			fmt.Fprint(out, "last")
			return nil
		},
		Expand: func(_ context.Context, text string) (core.Input, []string, error) {
			if strings.Contains(text, "@missing") {
				return core.Input{}, nil, errors.New("no such file: missing")
			}
			return core.TextInput(text), []string{"file.txt: 3 lines"}, nil
		},
	})
	c.send("!ls -l\r")
	c.wait("> !ls -l", "  first of ls -l", "running")
	close(more)
	c.wait("  last", "The model sees this with your next message.")
	c.send("see @missing\r")
	c.wait("no such file: missing", "> see @missing")
	c.send("\x17file\r")
	c.wait("file.txt: 3 lines", "I saw it")
	r.quit(c)
	var texts []string
	for _, m := range provider.Requests()[0].Messages {
		texts = append(texts, m.Parts.Text())
	}
	has(t, strings.Join(texts, "\n"), "see file", "I ran this command:\n\n    ls -l\n\nIt printed:\n\nfirst of ls -l\nlast")
	if n := strings.Count(c.all(), "first of ls -l"); n != 1 {
		t.Errorf("the output is shown %d times", n)
	}
}

func TestLineShellIsStopped(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Shell: func(ctx context.Context, _ string, _ io.Writer) error {
		<-ctx.Done()
		return errors.New("ended by signal")
	}})
	c.send("!sleep\r")
	c.wait("running · Ctrl-C stops")
	c.send(keyCtrlC)
	c.wait("✗ ended by signal")
	r.quit(c)
}

// TestLineShellCancelled: the cause of an end that the user asked for is not shown as an
// error of the program.
func TestLineShellCancelled(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Shell: func(ctx context.Context, _ string, _ io.Writer) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	c.send("!sleep\r")
	c.wait("running · Ctrl-C stops")
	c.send(keyCtrlC)
	c.wait("✗ stopped", "The model sees this")
	lacks(t, c.all(), "context canceled")
	r.quit(c)
}

func TestLineNarrowAndResize(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	long := strings.Repeat("word ", 30) + "end\n\n| a | b | c |\n|---|---|---|\n| some long cell here | another long cell | third |\n\n"
	s, asker := mustOpen(t, act{policy: coretest.AskAll, turns: []coretest.Turn{
		{Text: long + "tail that is not finished", Calls: coretest.CallTools(toolCall("shell", `{"command":"`+strings.Repeat("very ", 20)+`long"}`)).Calls, Block: release},
		{Text: long},
	}})
	c := newConsole(t, 40, 12)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Commands: testCommands, Status: func() Status {
		return Status{Model: "a-model-with-a-very-long-name", Mode: "accept-edits", Tokens: 123456, Cost: 1.5, Priced: true}
	}})
	c.send("go\r")
	c.wait("tail that is not finished")
	for _, size := range [][2]int{{80, 24}, {30, 8}, {12, 4}, {100, 30}, {40, 12}} {
		c.resize(size[0], size[1])
		c.send("x")
		c.wait("> x")
		c.send("\x7f")
		c.gone("> x")
	}
	c.wait("tail that is not finished", "accept-edits · Ctrl-C stops")
	// Narrow and wide again before the size is read: the size is the same as
	// before, but the rows are not.
	c.see(func(v *vt.Terminal) { v.Resize(12, 12); v.Resize(40, 12) })
	c.resize(40, 12)
	c.wait("tail that is not finished", "accept-edits · Ctrl-C stops")
	close(release)
	// Twelve rows have no room for the question: it is printed above the region.
	c.wait("y yes, once")
	has(t, c.all(), "Run `very very", "long`?")
	c.send("y")
	eventually(t, c.all, func() bool {
		return strings.Contains(c.all(), "✓ shell very") && strings.Count(c.all(), "word end") == 2
	})
	r.quit(c)
}

func TestLineNoColor(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{{Text: "**bold** and `code`\n"}}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Env: testEnv(map[string]string{"NO_COLOR": "1"})})
	c.send("hello\r")
	c.wait("bold and `code`")
	r.quit(c)
	c.see(func(v *vt.Terminal) {
		if v.Styled {
			t.Error("styles in spite of NO_COLOR")
		}
	})
}

func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{{Text: "plain answer\n"}}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Env: testEnv(map[string]string{"TERM": "dumb"})})
	c.wait(">")
	c.send("hello\n")
	c.wait("> hello", "plain answer")
	c.send("/quit\n")
	if next, err := r.wait(t); err != nil || next.Kind != NextQuit {
		t.Errorf("Run = %+v, %v; want quit", next, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lacks(t, c.raw.String(), "\x1b")
	if n := strings.Count(c.raw.String(), "hello"); n != 1 {
		t.Errorf("what the terminal echoed is shown again:\n%s", c.raw.String())
	}
}

func TestLineNotifies(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{policy: coretest.AskAll, turns: []coretest.Turn{
		coretest.CallTools(toolCall("shell", `{"command":"x"}`)), coretest.Say("the end"),
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Title: "my\x07 project", Notify: NotifyOSC9})
	c.send("go\r")
	c.wait("? Run `")
	c.see(func(v *vt.Terminal) {
		if v.Title != "? my project" || strings.Join(v.Notices, "|") != "question: Run `x`?" {
			t.Errorf("title %q, notices %q", v.Title, v.Notices)
		}
	})
	c.send("y")
	c.wait("the end")
	r.quit(c)
}

func TestLineReplaysThePast(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	var turns []coretest.Turn
	for i := range 5 {
		turns = append(turns,
			coretest.CallTools(toolCall("shell", fmt.Sprintf(`{"command":"step %d"}`, i))),
			coretest.Turn{Text: fmt.Sprintf("Answer **%d**.", i)})
	}
	first, _ := mustOpen(t, act{turns: turns, home: home})
	for i := range 5 {
		in := core.TextInput(fmt.Sprintf("question %d", i))
		if _, err := first.Run(t.Context(), sessions.Command{Type: "input", When: "next", Own: &in}); err != nil {
			t.Fatal(err)
		}
	}
	_ = first.Close()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{coretest.Say("and on")}, home: home, resume: first.ID()})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Replay: 2})
	c.wait("… earlier turns", "> question 3", "✓ shell step 3", "Answer 3.", "> question 4", "Answer 4.", "resumed session "+first.ID()[:20])
	lacks(t, c.screen(), "question 2", "ran step")
	c.send("go on\r")
	c.wait("and on")
	r.quit(c)
}

func TestLineCommandPanics(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{})
	c := newConsole(t, 100, 40)
	r := c.start(t.Context(), Options{Session: s, Asker: asker, Commands: testCommands})
	c.send("/panic\r")
	c.wait("/panic: panic: broken command")
	r.quit(c)
}

func TestLineErrors(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		{Text: "half an ans", Err: &model.Error{Code: model.CodeNetwork, Message: "the line is dead"}},
		{Text: "whole"},
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.send("go\r")
	c.wait("half an ans", "✗", "the line is dead", "NETWORK_ERROR")
	if n := strings.Count(c.all(), "the line is dead"); n != 1 {
		t.Errorf("the error is shown %d times", n)
	}
	c.send("again\r")
	c.wait("whole")
	r.quit(c)
}

// TestLineEchoesWhileItStreams types while 20,000 deltas arrive.
func TestLineEchoesWhileItStreams(t *testing.T) {
	t.Parallel()
	s := newFakeSession()
	s.past(1)
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: NewAsker()})
	c.send("go\r")
	<-s.submit
	var whole strings.Builder
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20_000 {
			piece := fmt.Sprintf("word%d ", i)
			if i%50 == 49 {
				piece += "\n\n"
			}
			whole.WriteString(piece)
			s.emit(event.MessageDelta{Text: piece})
		}
	}()
	c.wait("word")
	for _, k := range "while it streams" {
		c.send(string(k))
	}
	c.wait("> while it streams")
	<-done
	s.emit(event.Message{Content: model.TextParts(whole.String())})
	s.finish <- core.Outcome{Stop: core.StopDone}
	c.wait("word19999")
	c.gone("Ctrl-C stops")
	next := 0
	for _, w := range strings.Fields(c.all()) {
		if strings.HasPrefix(w, "word") {
			if w != fmt.Sprintf("word%d", next) {
				t.Fatalf("word%d is followed by %s", next-1, w)
			}
			next++
		}
	}
	if next != 20_000 {
		t.Errorf("%d words, want all", next)
	}
	c.send(keyCtrlC)
	r.quit(c)
}

// BenchmarkLineEcho measures the time from a key to its echo while an answer
// streams at 1,000 deltas a second.
func BenchmarkLineEcho(b *testing.B) {
	b.Run("text", func(b *testing.B) { benchmarkEcho(b, "word ", ".\n\n") })
	b.Run("idle", benchmarkIdleEcho)
	b.Run("code", func(b *testing.B) { benchmarkEcho(b, "X(1, \"Y\") ", "// Z\n", "~~~go\n") })
}

// benchmarkIdleEcho measures the echo while nothing else happens.
func benchmarkIdleEcho(b *testing.B) {
	c := newConsole(b, 100, 40)
	r := c.start(b.Context(), Options{Session: newFakeSession(), Asker: NewAsker(), Commands: testCommands})
	c.wait(">")
	measureEcho(b, c)
	c.send("\x15")
	r.quit(c)
}

// measureEcho types, and reports how long it took until a key was shown: half of the
// keys, 99 of 100, and all.
func measureEcho(b *testing.B, c *console) {
	keys := []string{"ä", "ö", "ü", "é", "è", "à", "ñ", "ç", "ß", "ø", "å", "æ"} // not in what streams
	var took []time.Duration
	for b.Loop() {
		if len(took)%60 == 0 {
			c.send("\x15")
		}
		w := &watch{keys[len(took)%len(keys)], make(chan time.Time, 1)}
		c.watch.Store(w)
		began := time.Now()
		c.send(w.text)
		took = append(took, (<-w.came).Sub(began))
	}
	slices.Sort(took)
	for name, at := range map[string]int{"ms-median": len(took) / 2, "ms-p99": len(took) * 99 / 100, "ms-worst": len(took) - 1} {
		b.ReportMetric(float64(took[at].Microseconds())/1000, name)
	}
}

// benchmarkEcho streams begin, and then piece over and over with an end after
// every 100 of text, or 6 of code.
func benchmarkEcho(b *testing.B, piece, end string, begin ...string) {
	every := 100
	if len(begin) > 0 {
		every = 6
	}
	s := newFakeSession()
	s.past(1)
	c := newConsole(b, 100, 40)
	r := c.start(b.Context(), Options{Session: s, Asker: NewAsker(), Commands: testCommands})
	c.send("go\r")
	<-s.submit
	s.emit(event.MessageDelta{Text: strings.Join(begin, "")})
	stop, done := make(chan struct{}), make(chan struct{})
	deltas, before := 0, c.length()
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				text := piece
				if i%every == every-1 {
					text = end
				}
				s.emit(event.MessageDelta{Text: text})
				deltas++
			case <-stop:
				return
			}
		}
	}()
	c.wait(strings.TrimSpace(piece))
	measureEcho(b, c)
	close(stop)
	<-done
	b.ReportMetric(float64(c.length()-before)/float64(deltas), "bytes/delta")
	s.finish <- core.Outcome{Stop: core.StopDone}
	c.gone("Ctrl-C stops")
	c.send("\x15")
	r.quit(c)
}

// TestLineAskUser shows the model's question once, with its answer; a choice is
// made with a key.
func TestLineAskUser(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		coretest.CallTools(toolCall("ask_user", `{"question":"Which colour?","options":["red","green"]}`)),
		coretest.CallTools(toolCall("wait_agent", `{"agent_id":"agent-1"}`)), coretest.Say("the end"),
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.send("go\r")
	c.wait("? Which colour?", "1 red", "2 green", "3 something else", "Esc: no answer")
	c.send("2")
	c.wait("? Which colour? → green", "wait_agent agent-1", "the end")
	lacks(t, c.all(), "{", "→ yes", "✓ ask_user")
	r.quit(c)
}
