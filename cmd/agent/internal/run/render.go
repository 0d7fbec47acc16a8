package run

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/event"
)

// textView prints a session's events: the answer's text as it streams, each
// tool call as a line, and a line with the outcome.
//
// On a terminal the text streams to stdout. Otherwise stdout gets only the last
// answer, for scripts, and everything before it goes to stderr.
type textView struct {
	text       io.Writer // the model's text as it streams; nil = whole messages only
	notes      io.Writer // everything else
	out        io.Writer // the last answer, unless text gets it; or nil
	verbose    bool
	quiet      bool // the session is not saved: do not print its ID
	transcript *tui.Transcript
	pieces     strings.Builder // the streamed text of the current answer
	midLine    bool            // the last line is unterminated
	err        error
}

func newTextView(t *Task) *textView {
	v := &textView{notes: t.Err, verbose: t.verbose, quiet: t.Forget}
	switch {
	case t.Narrate:
		v.text, v.notes = t.Out, t.Out
	case t.OutTTY:
		v.text = t.Out
	case t.ErrTTY:
		v.text, v.out = t.Err, t.Out
	default:
		v.out = t.Out
	}
	return v
}

func (v *textView) begin(init event.Event) {
	b := init.Body.(event.Init)
	v.transcript = tui.NewTranscript(b.Cwd, v.verbose)
	v.quiet = v.quiet || b.Log == ""
	if v.verbose {
		v.note("%s/%s in %s, permission mode %s", b.Provider, b.Model, b.Cwd, b.Mode)
	}
}

func (v *textView) show(e event.Event) {
	switch b := e.Body.(type) {
	case event.MessageStart:
		v.pieces.Reset()
	case event.MessageDelta:
		v.pieces.WriteString(b.Text)
		v.print(v.text, display.Printable(b.Text))
	case event.Message:
		v.message(b)
	case event.ReasoningDelta:
		if v.verbose {
			v.print(v.text, display.Printable(b.Text))
		}
	case event.Permission:
		if v.verbose {
			v.note("  %s by %s: %s", b.Decision, b.Decider, display.OneLine(b.Reason, 200))
		}
	case event.Error: // the command's error
	default:
		for _, l := range v.transcript.Lines(e) {
			v.note("%s", l)
		}
	}
}

// message prints a complete answer, or what of it was not streamed.
func (v *textView) message(b event.Message) {
	whole := b.Content.Text()
	rest, ok := strings.CutPrefix(whole, v.pieces.String())
	v.pieces.Reset()
	switch {
	case v.text == nil:
		if len(b.Content.ToolCalls()) > 0 || b.Partial {
			v.print(v.notes, display.Printable(whole))
		}
	case ok:
		v.print(v.text, display.Printable(rest))
	default: // the stream had gaps, since the terminal was blocked
		v.note("! the streamed text had gaps; the whole answer:")
		v.print(v.text, display.Printable(whole))
	}
	v.endLine()
}

func (v *textView) end(result event.Event) error {
	b := result.Body.(event.Result)
	v.endLine()
	if v.out != nil && b.Text != "" {
		v.print(v.out, strings.TrimRight(b.Text, "\n")+"\n")
	}
	for _, d := range b.Denied {
		v.note("! denied: %s: %s", d.Tool, display.OneLine(d.Reason, 1000))
	}
	summary := fmt.Sprintf("%s, %s, %d tokens (%d in, %d out), %s", b.Outcome, display.Plural(b.Rounds, "tool round"),
		b.Usage.Total(), b.Usage.Input, b.Usage.Output, display.Duration(time.Duration(b.DurationMS)*time.Millisecond))
	if !v.quiet {
		summary += ", session " + result.Session
	}
	v.note("— %s", summary)
	return v.err
}

func (v *textView) print(w io.Writer, text string) {
	if w == nil || text == "" {
		return
	}
	_, err := io.WriteString(w, text)
	v.keep(err)
	v.midLine = !strings.HasSuffix(text, "\n")
}

func (v *textView) endLine() {
	if v.midLine {
		w := v.text
		if w == nil {
			w = v.notes
		}
		v.print(w, "\n")
	}
}

func (v *textView) note(format string, args ...any) {
	v.endLine()
	_, err := fmt.Fprintf(v.notes, format+"\n", args...)
	v.keep(err)
}

func (v *textView) keep(err error) {
	if v.err == nil && err != nil {
		v.err = fmt.Errorf("cannot write the output: %w", err)
	}
}
