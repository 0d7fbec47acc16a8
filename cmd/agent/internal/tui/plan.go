package tui

import (
	"fmt"
	"reflect"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// maxDoneSteps limits the completed steps that are shown at a plan's beginning.
const maxDoneSteps = 3

// setPlan stores the model's plan, and shows it if it has changed.
func (s *scene) setPlan(p event.Plan) {
	if reflect.DeepEqual(p, s.plan) {
		return
	}
	s.plan = p
	s.separate()
	s.add("plan", s.planLines(p)...)
}

// planLines formats a plan: its progress and its steps.
func (s *scene) planLines(p event.Plan) []string {
	lines := s.fold(plain, display.PlanTitle(p), s.width, s.paint(cyan, "≡ "), "  ")
	steps, earlier := p.Steps, 0
	for earlier < len(steps) && steps[earlier].Status == event.StepCompleted {
		earlier++
	}
	if earlier -= maxDoneSteps; earlier > 1 {
		lines = append(lines, s.paint(dim, "  ✓ "+display.Plural(earlier, "earlier step")))
		steps = steps[earlier:]
	}
	for _, step := range steps {
		color, st := dim, plain
		switch step.Status {
		case event.StepCompleted:
			color, st = green, dim
		case event.StepInProgress:
			color, st = yellow, bold
		}
		mark := s.paint(color, display.StepMark(step.Status))
		lines = append(lines, s.fold(st, display.Printable(step.Step), s.width, "  "+mark+" ", "    ")...)
	}
	return lines
}

// stepNow describes the current step for the status line.
func (s *scene) stepNow() string {
	step := s.plan.Current()
	if step == "" {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", min(s.plan.Done()+1, len(s.plan.Steps)), len(s.plan.Steps), display.OneLine(step, 40))
}
