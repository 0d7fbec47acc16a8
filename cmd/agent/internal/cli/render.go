package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/seed-009c0928/agent/core/event"
)

// textView shows a session's events to a person: the answer's text as it
// streams, each tool call as a line, and a line with its outcome.
//
// On a terminal the text streams to stdout. Otherwise stdout gets the last
// answer alone, for scripts, and everything before it goes to stderr.
type textView struct {
	text    io.Writer // the model's words as they come; nil = only whole, when it is known where they belong
	notes   io.Writer // everything else
	out     io.Writer // the last answer, where text does not go there already; or nil
	verbose bool
	quiet   bool // the session is not kept: its id is of no use
	cwd     string
	calls   map[string]string           // what was said of each open call
	plan    map[string]event.PlanStatus // of each step, as it was said
	last    string                      // the call that stands right above; "" when something else does
	midLine bool                        // text ended without a newline
	err     error
}

func newTextView(t *task) *textView {
	v := &textView{notes: t.err, verbose: t.verbose, calls: map[string]string{}, quiet: t.forget}
	switch {
	case t.narrate:
		v.text, v.notes = t.out, t.out
	case t.outTTY:
		v.text = t.out
	case t.errTTY:
		v.text, v.out = t.err, t.out
	default:
		v.out = t.out
	}
	return v
}

func (v *textView) begin(init event.Event) {
	b := init.Body.(event.Init)
	v.cwd = b.Cwd
	v.quiet = v.quiet || b.Log == ""
	if v.verbose {
		v.note("%s/%s in %s, permission mode %s", b.Provider, b.Model, b.Cwd, b.Mode)
	}
}

func (v *textView) show(e event.Event) {
	switch b := e.Body.(type) {
	case event.MessageDelta:
		v.print(v.text, printable(b.Text))
	case event.Message:
		v.endLine()
		if v.text == nil && (len(b.Content.ToolCalls()) > 0 || b.Partial) {
			v.print(v.notes, printable(b.Content.Text()))
			v.endLine()
		}
	case event.ReasoningDelta:
		if v.verbose {
			v.print(v.text, printable(b.Text))
		}
	case event.ToolUse:
		if b.Name == event.PlanTool { // a plan speaks for itself
			v.calls[e.Call] = b.Name
			break
		}
		v.calls[e.Call], v.last = strings.TrimSpace(b.Name+" "+v.local(argSummary(b.Args))), e.Call
		v.note("● %s", v.calls[e.Call])
	case event.ToolResult:
		if p, ok := b.Plan(); ok {
			v.showPlan(p)
			break
		}
		v.result(e.Call, b)
	case event.Question:
		v.note("  ? %s", v.local(printable(b.Title)))
	case event.Answer:
		if b.Withdrawn {
			v.note("  ? withdrawn")
		} else {
			v.note("  ? %s", printable(strings.TrimSpace(b.Choice+" "+b.Reason)))
		}
	case event.Permission:
		if v.verbose {
			v.note("  %s by %s: %s", b.Decision, b.Decider, oneLine(b.Reason, 200))
		}
	case event.LLMRetry:
		if b.Max == 0 { // another provider takes over
			v.note("! %s", printable(b.Message))
			break
		}
		v.note("! %s; trying again in %s (%d of %d)", printable(b.Message), time.Duration(b.WaitMS)*time.Millisecond, b.Attempt, b.Max)
	case event.Steering:
		v.note("! %s: %s", b.Source, oneLine(b.Content.Text(), 200))
	case event.TurnLimit:
		v.note("! limit %s of %d reached", b.Limit, b.Max)
	case event.TokenLimit:
		v.note("! limit %s of %.6g reached (%.6g used)", b.Limit, b.Max, b.Used)
	case event.Compacted:
		v.note("! the conversation was summarised: %d tokens became %d", b.Before, b.After)
	case event.Warning:
		v.note("! %s", printable(b.Message))
	case event.Cancelled:
		v.note("! cancelled: %s", printable(b.Reason))
	default:
		v.showJoined(b)
	}
}

// showJoined shows which subagents and skills joined in, and why.
func (v *textView) showJoined(body event.Body) {
	switch b := body.(type) {
	case event.SubagentStart:
		v.note("▸ %s: %s", printable(b.Name), oneLine(b.Input, 200))
	case event.SubagentEnd:
		v.note("◂ %s", subagentEnd(b))
	case event.SkillActivated:
		v.note("! skill %s: called for by %s %s", printable(b.Name), b.By, printable(b.Trigger))
	case event.SkillsListed:
		if b.Left > 0 {
			v.note("! %d skills were named to the model, %d others left out", len(b.Names), b.Left)
		}
	}
}

// subagentEnd says in a line how a subagent ended.
func subagentEnd(b event.SubagentEnd) string {
	text := fmt.Sprintf("%s: %s, %d tokens", printable(b.Name), b.Outcome, b.Usage.Total())
	if b.Error != "" {
		text += ": " + oneLine(b.Error, 200)
	}
	return text
}

// showPlan shows what is new in the model's plan.
func (v *textView) showPlan(p event.Plan) {
	v.note("≡ plan: %d of %d done", p.Done(), len(p.Steps))
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
		v.note("  %s %s", mark, oneLine(s.Step, 160))
	}
	v.plan = said
}

// result shows a call's outcome: a line, and of a command or a failure the end
// of what it said.
func (v *textView) result(call string, b event.ToolResult) {
	mark := "✓"
	if b.IsError || failedCommand(b) {
		mark = "✗"
	}
	if v.last != call { // another call was shown in between
		mark += " " + v.calls[call] + ":"
	}
	delete(v.calls, call)
	v.last = ""
	lines := strings.Split(strings.TrimRight(v.local(printable(b.Content.Text())), "\n"), "\n")
	took := time.Duration(b.DurationMS) * time.Millisecond
	if len(lines) == 1 {
		v.note("  %s %s (%s)", mark, clip(lines[0], 160), took)
		return
	}
	v.note("  %s %s (%s)", mark, plural(len(lines), "line"), took)
	if b.Name != "shell" && !b.IsError && !v.verbose {
		return
	}
	const most = 8
	for _, l := range lines[max(0, len(lines)-most):] {
		v.note("    %s", clip(l, 160))
	}
}

// failedCommand reports whether the result is that of a command that failed.
func failedCommand(b event.ToolResult) bool {
	var exit struct {
		ExitCode int `json:"exitCode"`
	}
	return b.Name == "shell" && json.Unmarshal(b.Structured, &exit) == nil && exit.ExitCode != 0
}

// local shortens the paths of the workspace.
func (v *textView) local(text string) string {
	switch v.cwd {
	case "":
		return text
	case text:
		return "."
	}
	return strings.ReplaceAll(text, v.cwd+string(filepath.Separator), "")
}

func (v *textView) end(result event.Event) error {
	b := result.Body.(event.Result)
	v.endLine()
	if v.out != nil && b.Text != "" {
		v.print(v.out, strings.TrimRight(b.Text, "\n")+"\n")
	}
	for _, d := range b.Denied {
		v.note("! denied: %s: %s", d.Tool, oneLine(d.Reason, 300))
	}
	summary := fmt.Sprintf("%s, %s, %d tokens (%d in, %d out), %s", b.Outcome, plural(b.Rounds, "tool round"),
		b.Usage.Total(), b.Usage.Input, b.Usage.Output, time.Duration(b.DurationMS)*time.Millisecond)
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
		v.err = fmt.Errorf("the output cannot be written: %w", err)
	}
}

// argSummary shows the arguments of a call in one line: the telling one first.
func argSummary(args string) string {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) != nil {
		return oneLine(args, 100)
	}
	for _, key := range []string{"command", "file_path", "pattern", "path", "url", "task"} {
		if s, ok := m[key].(string); ok {
			return oneLine(s, 100)
		}
	}
	if len(m) == 0 {
		return ""
	}
	if patch, ok := m["patch"].(string); ok {
		return oneLine(patchedFiles(patch), 100)
	}
	return oneLine(args, 100)
}

// patchedFiles lists the files that a patch names.
func patchedFiles(patch string) string {
	var files []string
	for line := range strings.SplitSeq(patch, "\n") {
		if _, file, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(line, "*** ") {
			files = append(files, strings.TrimSpace(file))
		}
	}
	return strings.Join(files, ", ")
}

// oneLine makes text one line of at most n characters.
func oneLine(text string, n int) string {
	return clip(strings.Join(strings.Fields(printable(text)), " "), n)
}

// clip cuts a line to n characters.
func clip(text string, n int) string {
	text = strings.TrimRight(text, " \t")
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// printable drops what could drive a terminal: control characters and those
// that reorder text.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case unicode.IsControl(c), unicode.Is(unicode.Bidi_Control, c):
			return -1
		}
		return c
	}, text)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
