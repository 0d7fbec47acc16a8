package display

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// Severity classifies a [Note].
type Severity int

// The severities.
const (
	Info Severity = iota
	Warning
	Failure
)

// mark is the first character of a note's line.
func (s Severity) mark() string {
	return [...]string{"—", "!", "✗"}[s]
}

// Note is a line about a session, such as a retry or a limit.
type Note struct {
	Severity Severity
	Text     string // printable, without the mark
	mark     string // in place of the severity's
}

// String returns the line with its mark: "! cancelled: …".
func (n Note) String() string {
	if n.mark != "" {
		return n.mark + " " + n.Text
	}
	return n.Severity.mark() + " " + n.Text
}

// NoteOf describes an event that is neither part of the conversation nor a
// tool call. It reports false for all other events, and for those that need no
// line.
func NoteOf(body event.Body) (Note, bool) {
	n, ok := problemNote(body)
	if !ok {
		n, ok = infoNote(body)
	}
	if !ok {
		n, ok = taskNote(body)
	}
	n.Text = Printable(n.Text)
	return n, ok
}

// problemNote describes warnings and failures.
func problemNote(body event.Body) (Note, bool) {
	text, severity := "", Warning
	switch b := body.(type) {
	case event.LLMRetry:
		text = retryNote(b)
	case event.TurnLimit:
		text = fmt.Sprintf("limit reached: %s = %d", b.Limit, b.Max)
	case event.TokenLimit:
		text = fmt.Sprintf("limit reached: %s = %.6g (used: %.6g)", b.Limit, b.Max, b.Used)
	case event.LoopDetection:
		text = "loop detected: the model was warned"
	case event.Warning:
		text = b.Message
	case event.Cancelled:
		text = "cancelled: " + b.Reason
		if b.Abort {
			text = "aborted: " + b.Reason
		}
	case event.Error:
		text, severity = coded(b), Failure
	}
	return Note{Severity: severity, Text: text}, text != ""
}

// coded is the message of an error with its code, which comes before what to do about it.
func coded(b event.Error) string {
	first, rest, more := strings.Cut(strings.TrimSpace(b.Message), "\n")
	text := fmt.Sprintf("%s (%s)", first, b.Code)
	if more {
		text += "\n" + rest
	}
	return text
}

func retryNote(b event.LLMRetry) string {
	text := b.Message
	if b.Discard {
		text += "; the incomplete answer is discarded"
	}
	wait := time.Duration(b.WaitMS) * time.Millisecond
	switch {
	case b.Max == 0: // a fallback takes over
		return text
	case wait == 0:
		return fmt.Sprintf("%s; retrying (%d of %d)", text, b.Attempt, b.Max)
	}
	return fmt.Sprintf("%s; retrying in %s (%d of %d)", text, Duration(wait), b.Attempt, b.Max)
}

// infoNote describes subagents, skills, hooks, compactions and rewinds.
func infoNote(body event.Body) (Note, bool) {
	switch b := body.(type) {
	case event.SubagentStart:
		return Note{mark: "▸", Text: OneLine(b.Name+": "+b.Input, 200)}, true
	case event.SubagentEnd:
		text := fmt.Sprintf("%s: %s, %s tokens", b.Name, b.Outcome, Count(b.Usage.Total()))
		if b.Error != "" {
			text += ": " + b.Error
		}
		return Note{mark: "◂", Text: OneLine(text, 200)}, true
	case event.SkillActivated:
		return Note{Text: fmt.Sprintf("skill %s: %s %s", b.Name, b.By, b.Trigger)}, true
	case event.SkillsListed:
		return Note{Text: fmt.Sprintf("%s listed, %d left out", Plural(len(b.Names), "skill"), b.Left)}, b.Left > 0
	case event.Hook:
		return Note{Text: HookLine(b)}, b.Decision != "" || b.Changed
	case event.Compacted:
		return Note{Text: fmt.Sprintf("conversation compacted: %s → %s tokens", Count(b.Before), Count(b.After))}, true
	case event.Rewound:
		return Note{Text: fmt.Sprintf("conversation rewound to before input %d", b.Input)}, true
	}
	return Note{}, false
}

// HookLine describes what a hook did in one line.
func HookLine(b event.Hook) string {
	text := fmt.Sprintf("hook %s (%s)", b.Event, b.Name)
	if b.Tool != "" {
		text += " on " + b.Tool
	}
	switch {
	case b.Error != "":
		text += ": failed: " + b.Error
	case b.Decision != "":
		text += ": " + b.Decision
		if b.Reason != "" {
			text += ": " + b.Reason
		}
	case b.Changed:
		text += ": changed the call"
	case len(b.Variables) > 0:
		text += ": sets " + strings.Join(b.Variables, ", ")
	}
	return OneLine(text, 300)
}

// PlanTitle summarises a plan: "plan · 1 of 4 done".
func PlanTitle(p event.Plan) string {
	title := fmt.Sprintf("plan · %d of %d done", p.Done(), len(p.Steps))
	if p.Explanation != "" {
		title += " · " + OneLine(p.Explanation, 300)
	}
	return title
}

// StepMark is the mark of a plan's step.
func StepMark(s event.PlanStatus) string {
	switch s {
	case event.StepCompleted:
		return "✓"
	case event.StepInProgress:
		return "▸"
	}
	return "○"
}

// AnswerTo describes the answer to a question with this title in one line.
func AnswerTo(title string, a event.Answer) string {
	title = cmp.Or(title, "Parked question") // of an earlier run
	text := choiceWords(a.Choice)
	if a.Withdrawn {
		text = "withdrawn"
	}
	if len(a.Rules) > 0 {
		text += ": " + strings.Join(a.Rules, ", ")
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return title + " → " + OneLine(text, 1000)
}

// choiceWords are the words that an answer has for the user. Those of other questions
// than permission requests have words already.
func choiceWords(choice string) string {
	switch choice {
	case "":
		return "no answer"
	case "once":
		return "yes, once"
	case "session":
		return "yes, for this session"
	case "always":
		return "yes, always"
	case "deny":
		return "no"
	}
	return choice
}
