package run

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// TextView shows a session's events to a person: the answer's text as it
// streams, each tool call as a line, and a line with its outcome.
//
// On a terminal the text streams to stdout. Otherwise stdout gets the last
// answer alone, for scripts, and everything before it goes to stderr.
type TextView struct {
	text    io.Writer // the model's words as they come; nil = only whole, when it is known where they belong
	Notes   io.Writer // everything else
	out     io.Writer // the last answer, where text does not go there already; or nil
	verbose bool
	quiet   bool // the session is not kept: its id is of no use
	Cwd     string
	Calls   map[string]string           // what was said of each open call
	plan    map[string]event.PlanStatus // of each step, as it was said
	last    string                      // the call that stands right above; "" when something else does
	pieces  strings.Builder             // of the present answer, as they came
	midLine bool                        // text ended without a newline
	err     error
}

func newTextView(t *Task) *TextView {
	v := &TextView{Notes: t.Err, verbose: t.verbose, Calls: map[string]string{}, quiet: t.Forget}
	switch {
	case t.Narrate:
		v.text, v.Notes = t.Out, t.Out
	case t.OutTTY:
		v.text = t.Out
	case t.ErrTTY:
		v.text, v.out = t.Err, t.Out
	default:
		v.out = t.Out
	}
	return v
}

func (v *TextView) begin(init event.Event) {
	b := init.Body.(event.Init)
	v.Cwd = b.Cwd
	v.quiet = v.quiet || b.Log == ""
	if v.verbose {
		v.Note("%s/%s in %s, permission mode %s", b.Provider, b.Model, b.Cwd, b.Mode)
	}
}

func (v *TextView) Show(e event.Event) {
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
	case event.ToolUse:
		if b.Name == event.PlanTool { // a plan speaks for itself
			v.Calls[e.Call] = b.Name
			break
		}
		v.Calls[e.Call], v.last = strings.TrimSpace(b.Name+" "+display.Arguments(b.Args, v.Cwd, 100)), e.Call
		v.Note("● %s", v.Calls[e.Call])
	case event.ToolResult:
		if p, ok := b.Plan(); ok {
			v.showPlan(p)
			break
		}
		v.result(e.Call, b)
	case event.Question:
		v.Note("  ? %s", v.local(display.Printable(b.Title)))
	case event.Answer:
		if b.Withdrawn {
			v.Note("  ? withdrawn")
		} else {
			v.Note("  ? %s", display.Printable(strings.TrimSpace(b.Choice+" "+b.Reason)))
		}
	case event.Permission:
		if v.verbose {
			v.Note("  %s by %s: %s", b.Decision, b.Decider, display.OneLine(b.Reason, 200))
		}
	case event.Steering:
		v.Note("! %s: %s", b.Source, display.OneLine(b.Content.Text(), 200))
	case event.Compacted:
		v.Note("! the conversation was summarised: %d tokens became %d", b.Before, b.After)
	default:
		v.showTrouble(b)
		v.showJoined(b)
	}
}

// message takes an answer as a whole: what of it did not come in pieces is
// shown now.
func (v *TextView) message(b event.Message) {
	whole := b.Content.Text()
	rest, ok := strings.CutPrefix(whole, v.pieces.String())
	v.pieces.Reset()
	switch {
	case v.text == nil:
		if len(b.Content.ToolCalls()) > 0 || b.Partial {
			v.print(v.Notes, display.Printable(whole))
		}
	case ok:
		v.print(v.text, display.Printable(rest))
	default: // a terminal that was held up missed some in the middle
		v.Note("! not all of this could be shown as it came; the whole answer:")
		v.print(v.text, display.Printable(whole))
	}
	v.endLine()
}

// showTrouble shows what did not go as hoped.
func (v *TextView) showTrouble(body event.Body) {
	switch b := body.(type) {
	case event.LLMRetry:
		if b.Max == 0 { // another provider takes over
			v.Note("! %s", display.Printable(b.Message))
			break
		}
		v.Note("! %s; trying again in %s (%d of %d)", display.Printable(b.Message), time.Duration(b.WaitMS)*time.Millisecond, b.Attempt, b.Max)
	case event.TurnLimit:
		v.Note("! limit %s of %d reached", b.Limit, b.Max)
	case event.TokenLimit:
		v.Note("! limit %s of %.6g reached (%.6g used)", b.Limit, b.Max, b.Used)
	case event.Warning:
		v.Note("! %s", display.Printable(b.Message))
	case event.Cancelled:
		v.Note("! cancelled: %s", display.Printable(b.Reason))
	}
}

// showJoined shows which subagents and skills joined in, and why.
func (v *TextView) showJoined(body event.Body) {
	switch b := body.(type) {
	case event.SubagentStart:
		v.Note("▸ %s: %s", display.Printable(b.Name), display.OneLine(b.Input, 200))
	case event.SubagentEnd:
		v.Note("◂ %s", subagentEnd(b))
	case event.SkillActivated:
		v.Note("! skill %s: called for by %s %s", display.Printable(b.Name), b.By, display.Printable(b.Trigger))
	case event.SkillsListed:
		if b.Left > 0 {
			v.Note("! %d skills were named to the model, %d others left out", len(b.Names), b.Left)
		}
	}
}

// subagentEnd says in a line how a subagent ended.
func subagentEnd(b event.SubagentEnd) string {
	text := fmt.Sprintf("%s: %s, %d tokens", display.Printable(b.Name), b.Outcome, b.Usage.Total())
	if b.Error != "" {
		text += ": " + display.OneLine(b.Error, 200)
	}
	return text
}

// showPlan shows what is new in the model's plan.
func (v *TextView) showPlan(p event.Plan) {
	v.Note("≡ plan: %d of %d done", p.Done(), len(p.Steps))
	said := map[string]event.PlanStatus{}
	for _, s := range p.Steps {
		said[s.Step] = s.Status
		if v.plan[s.Step] == s.Status {
			continue
		}
		mark := "○"
		switch s.Status {
		case event.StepCompleted:
			mark = "✓"
		case event.StepInProgress:
			mark = "▸"
		}
		v.Note("  %s %s", mark, display.OneLine(s.Step, 160))
	}
	v.plan = said
}

// result shows a call's outcome: a line, and of a command or a failure the end
// of what it said.
func (v *TextView) result(call string, b event.ToolResult) {
	mark := "✓"
	if b.IsError || display.CommandFailed(b) {
		mark = "✗"
	}
	if v.last != call { // another call was shown in between
		mark += " " + v.Calls[call] + ":"
	}
	delete(v.Calls, call)
	v.last = ""
	lines := strings.Split(strings.TrimRight(v.local(display.Printable(b.Content.Text())), "\n"), "\n")
	took := time.Duration(b.DurationMS) * time.Millisecond
	if len(lines) == 1 {
		v.Note("  %s %s (%s)", mark, display.Clip(lines[0], 160), took)
		return
	}
	v.Note("  %s %s (%s)", mark, cmdutil.Plural(len(lines), "line"), took)
	if b.Name != "shell" && !b.IsError && !v.verbose {
		return
	}
	const most = 8
	for _, l := range lines[max(0, len(lines)-most):] {
		v.Note("    %s", display.Clip(l, 160))
	}
}

// local shortens the paths of the workspace.
func (v *TextView) local(text string) string { return display.Local(text, v.Cwd) }

func (v *TextView) end(result event.Event) error {
	b := result.Body.(event.Result)
	v.endLine()
	if v.out != nil && b.Text != "" {
		v.print(v.out, strings.TrimRight(b.Text, "\n")+"\n")
	}
	for _, d := range b.Denied {
		v.Note("! denied: %s: %s", d.Tool, display.OneLine(d.Reason, 1000))
	}
	summary := fmt.Sprintf("%s, %s, %d tokens (%d in, %d out), %s", b.Outcome, cmdutil.Plural(b.Rounds, "tool round"),
		b.Usage.Total(), b.Usage.Input, b.Usage.Output, time.Duration(b.DurationMS)*time.Millisecond)
	if !v.quiet {
		summary += ", session " + result.Session
	}
	v.Note("— %s", summary)
	return v.err
}

func (v *TextView) print(w io.Writer, text string) {
	if w == nil || text == "" {
		return
	}
	_, err := io.WriteString(w, text)
	v.keep(err)
	v.midLine = !strings.HasSuffix(text, "\n")
}

func (v *TextView) endLine() {
	if v.midLine {
		w := v.text
		if w == nil {
			w = v.Notes
		}
		v.print(w, "\n")
	}
}

func (v *TextView) Note(format string, args ...any) {
	v.endLine()
	_, err := fmt.Fprintf(v.Notes, format+"\n", args...)
	v.keep(err)
}

func (v *TextView) keep(err error) {
	if v.err == nil && err != nil {
		v.err = fmt.Errorf("the output cannot be written: %w", err)
	}
}
