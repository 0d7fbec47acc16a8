package display

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// taskNote describes the events of tasks.
func taskNote(body event.Body) (Note, bool) {
	n := Note{Text: taskText(body)}
	switch b := body.(type) {
	case event.TaskStart:
		n.mark = "▸"
	case event.TaskState:
		if b.State == "blocked" || b.State == "exhausted" || b.State == "cancelled" {
			n.Severity = Warning
		}
	case event.BeadStart:
		n.mark = "▸"
	case event.BeadEnd:
		n.mark = "◂"
	case event.Criterion:
		n.mark = map[string]string{"pass": "✓", "fail": "✗", "error": "✗"}[b.Status]
	case event.Guard, event.Budget:
		n.Severity = Warning
	}
	return n, n.Text != ""
}

func taskText(body event.Body) string {
	switch b := body.(type) {
	case event.TaskStart:
		var criteria []string
		for _, c := range b.Criteria {
			criteria = append(criteria, OneLine(cmp.Or(c.Command, c.Path, c.Kind), 200))
		}
		return fmt.Sprintf("task %s: %s; it is complete when these are met: %s", b.Task, OneLine(b.Description, 200), strings.Join(criteria, ", "))
	case event.TaskState:
		if b.Bead > 0 {
			return fmt.Sprintf("bead %d: %s", b.Bead, b.State)
		}
		return withReason("task "+b.State, b.Reason)
	case event.BeadStart:
		text := fmt.Sprintf("bead %d of at most %d", b.Bead, b.Max)
		if b.Step != "" {
			text += ": " + OneLine(b.Step, 80)
		}
		if b.Worktree != "" {
			text += ", in worktree " + OneLine(b.Worktree, 80)
		}
		if b.Finishing {
			text += " (the last one that the budget allows)"
		}
		return text
	case event.BeadEnd:
		text := fmt.Sprintf("bead %d %s: %s changed, %s, %d tokens", b.Bead, b.State, Plural(len(b.Result.Files)+b.Result.Left, "file"), Plural(b.Result.Rounds, "round"), b.Result.Used)
		if b.Result.CostUSD > 0 {
			text += fmt.Sprintf(", $%.4f", b.Result.CostUSD)
		}
		return withReason(text, b.Reason)
	case event.Criterion:
		text := fmt.Sprintf("%s: %s", OneLine(b.Name, 80), b.Status)
		if b.Command != "" {
			text += " (" + OneLine(b.Command, 200) + ")"
		}
		if b.Status == "fail" || b.Status == "error" {
			return text + fmt.Sprintf(": exit code %d, %s", b.ExitCode, Duration(time.Duration(b.DurationMS)*time.Millisecond))
		}
		return text
	case event.Guard:
		text := fmt.Sprintf("guard: %s: %s", b.Kind, OneLine(b.Path, 200))
		if b.Action != "" { // it is decided
			text += " (" + b.Action + ")"
		}
		return withReason(text, b.Detail)
	case event.Budget:
		if b.Warning > 0 {
			return fmt.Sprintf("%d %% of the token budget are used: %d of %d", b.Warning, b.Used, b.Max)
		}
	}
	return ""
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + OneLine(reason, 300)
}
