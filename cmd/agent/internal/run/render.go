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
	on         string // the flag --on with a space, for commands; or empty
	quiet      bool   // the session is not saved: do not print its ID
	transcript *tui.Transcript
	pieces     strings.Builder // the streamed text of the current answer
	midLine    bool            // the last line is unterminated
	tty        bool            // notes go to a terminal
	wait       display.Wait
	shown      string // the line about the wait at the cursor, which is replaced
	told       bool   // that the model takes long; without a terminal
	err        error
}

func newTextView(t *Task) *textView {
	v := &textView{notes: t.Err, verbose: t.verbose, quiet: t.Forget, tty: t.ErrTTY}
	if t.on != "" {
		v.on = "--on " + t.on + " "
	}
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
	v.clearWait()
	v.wait.Apply(e)
	switch b := e.Body.(type) {
	case event.MessageStart:
		v.pieces.Reset()
	case event.MessageDelta:
		if v.text != nil {
			v.pieces.WriteString(b.Text)
		}
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
		if retry, ok := e.Body.(event.LLMRetry); ok && retry.Discard {
			v.pieces.Reset()
		}
		for _, l := range v.transcript.Lines(e) {
			v.note("%s", l)
		}
	}
}

// tick shows how long the session has been waiting: on a terminal in a line that is
// replaced, otherwise once.
func (v *textView) tick(now time.Time) {
	const long = 30 * time.Second
	text := v.wait.Text(now)
	switch {
	case text == "":
		v.told = v.told && v.wait.Left(now) > 0
	case v.tty && !v.midLine:
		v.clearWait()
		_, err := io.WriteString(v.notes, "… "+text)
		v.keep(err)
		v.shown = text
	case !v.tty && !v.told && v.wait.Left(now) == 0 && v.wait.Silent(now) >= long:
		v.told = true
		v.note("… %s", text)
	}
}

// clearWait erases the line of tick.
func (v *textView) clearWait() {
	if v.shown != "" {
		_, err := io.WriteString(v.notes, "\r\x1b[K")
		v.keep(err)
		v.shown = ""
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
	v.clearWait()
	v.endLine()
	for _, q := range b.Questions {
		if v.out != nil {
			v.print(v.out, q.QID+"\n")
		}
		v.note("? %s", display.OneLine(q.Title, 1000))
		v.note("  To answer: agent answer %s%s yes|no|rule", v.on, q.QID)
	}
	if v.out != nil && b.Text != "" && len(b.Questions) == 0 {
		v.print(v.out, strings.TrimRight(b.Text, "\n")+"\n")
	}
	for _, d := range b.Denied {
		denied := "! denied: " + display.VisibleLine(d.Tool, 80)
		if d.Reason != "" {
			denied += ": " + display.OneLine(d.Reason, 1000)
		}
		v.note("%s", denied)
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
	_, err := io.WriteString(v.notes, display.Printable(fmt.Sprintf(format, args...))+"\n")
	v.keep(err)
}

func (v *textView) keep(err error) {
	if v.err == nil && err != nil {
		v.err = fmt.Errorf("cannot write the output: %w", err)
	}
}
