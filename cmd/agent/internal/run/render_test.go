package run

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// conversation shows a call and two questions.
func conversation(v view) error {
	v.begin(event.Event{Session: "s1", Body: event.Init{Cwd: "/ws", Log: "/home/s1.jsonl"}})
	for _, e := range []event.Event{
		{Body: event.MessageDelta{Text: "I'll "}},
		{Body: event.MessageDelta{Text: "look.\x1b[2J"}},
		{Body: event.Message{Content: model.Parts{model.Text{Text: "I'll look.\x1b[2J"}, model.ToolCall{ID: "c", Name: "shell"}}}},
		{Call: "c", Body: event.ToolUse{Name: "shell", Args: `{"command":"ls\n\u001b[1m /ws/sub"}`}},
		{Body: event.Question{Title: "Connect to a.example?"}},
		{Body: event.Answer{Choice: "once"}},
		{Body: event.Question{QID: "q2", Title: "Sure?"}},
		{Body: event.Answer{QID: "q2", Withdrawn: true}},
		{Call: "c", Body: event.ToolResult{Name: "shell", Content: model.TextParts("a\nb\n[exit code 0, 0.01 s]"), DurationMS: 12}},
		{Body: event.Warning{Code: "LIMIT", Message: "nearly over"}},
		{Body: event.MessageDelta{Text: "Two files."}},
		{Body: event.Message{Content: model.TextParts("Two files.")}},
	} {
		v.show(e)
	}
	return v.end(event.Event{Session: "s1", Body: event.Result{
		Outcome: "done", Text: "Two files.", Rounds: 1, DurationMS: 1500, Usage: model.Usage{Input: 20, Output: 3},
	}})
}

const (
	work = `● shell ls sub
? Connect to a.example? → yes, once
? Sure? → withdrawn
✓ shell ls sub · 3 lines · 12 ms
  a
  b
  [exit code 0, 0.01 s]
! nearly over
`
	summary = "— done, 1 tool round, 23 tokens (20 in, 3 out), 1.5 s, session s1\n"
)

func TestTextView(t *testing.T) {
	for name, test := range map[string]struct {
		streams  cmdutil.IO
		out, err string
	}{
		"all to a terminal": {cmdutil.IO{OutTTY: true, ErrTTY: true}, "I'll look.\nTwo files.\n", work + summary},
		"stdout to a file":  {cmdutil.IO{ErrTTY: true}, "Two files.\n", "I'll look.\n" + work + "Two files.\n" + summary},
		"both to files":     {cmdutil.IO{}, "Two files.\n", "I'll look.\n" + work + summary},
	} {
		t.Run(name, func(t *testing.T) {
			var out, err bytes.Buffer
			test.streams.Out, test.streams.Err = &out, &err
			if e := conversation(newTextView(&Task{IO: &test.streams})); e != nil {
				t.Error(e)
			}
			if out.String() != test.out {
				t.Errorf("stdout:\n%s\nwant:\n%s", &out, test.out)
			}
			if err.String() != test.err {
				t.Errorf("stderr:\n%s\nwant:\n%s", &err, test.err)
			}
		})
	}
}

// TestTextViewMissesNothing checks that the complete answer fills gaps in the
// stream, which a blocked terminal (Ctrl-S, a slow line) causes.
func TestTextViewMissesNothing(t *testing.T) {
	whole := event.Message{Content: model.TextParts("one two three")}
	const note = "! the streamed text had gaps; the whole answer:\n"
	for name, test := range map[string]struct {
		pieces   []string
		out, err string
	}{
		"none":       {[]string{"one ", "two ", "three"}, "one two three\n", ""},
		"the end":    {[]string{"one "}, "one two three\n", ""},
		"all":        {nil, "one two three\n", ""},
		"the middle": {[]string{"one ", "three"}, "one three\none two three\n", note},
	} {
		t.Run(name, func(t *testing.T) {
			var out, err bytes.Buffer
			v := newTextView(&Task{IO: &cmdutil.IO{Out: &out, Err: &err, OutTTY: true, ErrTTY: true}})
			for range 2 { // answers do not mix
				v.show(event.Event{Body: event.MessageStart{}})
				for _, p := range test.pieces {
					v.show(event.Event{Body: event.MessageDelta{Text: p}})
				}
				v.show(event.Event{Body: whole})
			}
			if out.String() != test.out+test.out || err.String() != test.err+test.err {
				t.Errorf("stdout:\n%s\nstderr:\n%s", &out, &err)
			}
		})
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestViewsReportBrokenOutput(t *testing.T) {
	for _, f := range []format{FormatText, FormatJSON, FormatStream} {
		v := (&Task{IO: &cmdutil.IO{Out: brokenWriter{}, Err: &bytes.Buffer{}}, Format: f}).newView()
		if err := conversation(v); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestWaitIsShown checks what is shown of a wait: on a terminal a line that counts
// down, elsewhere a line for a long wait.
func TestWaitIsShown(t *testing.T) {
	begin := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		streams cmdutil.IO
		want    string
	}{
		"terminal": {cmdutil.IO{ErrTTY: true}, "… waiting for the model for 6.0 s\r\x1b[K… waiting for the model for 40 s\r\x1b[K! slow; retrying in 1 m 20 s (1 of 3)\n… retrying in 1 m 10 s\r\x1b[K"},
		"file":     {cmdutil.IO{}, "… waiting for the model for 40 s\n! slow; retrying in 1 m 20 s (1 of 3)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var err bytes.Buffer
			test.streams.Err, test.streams.Out = &err, io.Discard
			v := newTextView(&Task{IO: &test.streams})
			v.begin(event.Event{Body: event.Init{}})
			v.show(event.Event{Time: begin, Body: event.LLMStart{}})
			for _, s := range []int{1, 6, 40} {
				v.tick(begin.Add(time.Duration(s) * time.Second))
			}
			v.show(event.Event{Time: begin.Add(50 * time.Second), Body: event.LLMRetry{Attempt: 1, Max: 3, WaitMS: 80_000, Message: "slow"}})
			v.tick(begin.Add(60 * time.Second))
			v.show(event.Event{Time: begin.Add(130 * time.Second), Body: event.LLMEnd{}})
			v.tick(begin.Add(200 * time.Second))
			if got := err.String(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
