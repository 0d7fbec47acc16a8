package tui

import (
	"fmt"
	"reflect"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// maxDoneSteps is how many completed steps at a plan's beginning are shown.
const maxDoneSteps = 3

// setPlan takes the model's plan, and shows it if it is another one.
func (s *scene) setPlan(p event.Plan) {
	if reflect.DeepEqual(p, s.plan) {
		return
	}
	s.plan = p
	s.separate()
	s.add("plan", s.planLines(p)...)
}

// planLines shows a plan: how far it is, and its steps.
func (s *scene) planLines(p event.Plan) []string {
	title := fmt.Sprintf("plan · %d of %d done", p.Done(), len(p.Steps))
	if p.Explanation != "" {
		title += " · " + display.OneLine(p.Explanation, 300)
	}
	lines := s.fold(plain, title, s.width, s.paint(cyan, "≡ "), "  ")
	steps, earlier := p.Steps, 0
	for earlier < len(steps) && steps[earlier].Status == event.StepCompleted {
		earlier++
	}
	if earlier -= maxDoneSteps; earlier > 1 {
		lines = append(lines, s.paint(dim, fmt.Sprintf("  ✓ %s before", plural(earlier, "step"))))
		steps = steps[earlier:]
	}
	for _, step := range steps {
		mark, st := s.paint(dim, "○"), plain
		switch step.Status {
		case event.StepCompleted:
			mark, st = s.paint(green, "✓"), dim
		case event.StepInProgress:
			mark, st = s.paint(yellow, "▸"), bold
		}
		lines = append(lines, s.fold(st, display.Printable(step.Step), s.width, "  "+mark+" ", "    ")...)
	}
	return lines
}

// stepNow is the step in progress, for a status line.
func (s *scene) stepNow() string {
	step := s.plan.Current()
	if step == "" {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", min(s.plan.Done()+1, len(s.plan.Steps)), len(s.plan.Steps), display.OneLine(step, 40))
}
