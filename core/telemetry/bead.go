package telemetry

import (
	"fmt"

	"github.com/seed-009c0928/agent/core/event"
)

// bead takes the events of a task. Its bead is open like a call.
func (s *session) bead(e event.Event) {
	key := func(n int) string { return fmt.Sprintf("bead %d", n) }
	switch body := e.Body.(type) {
	case event.BeadStart:
		span := s.begin(e, KindBead, key(body.Bead), nil)
		span.set("agent.task.id", body.Task)
		span.set("agent.task.step", body.Step)
		span.set("agent.bead.number", body.Bead)
		span.set("agent.bead.session", body.Child)
		s.calls[key(body.Bead)] = span
	case event.Criterion:
		if span := s.calls[key(body.Bead)]; span != nil {
			span.at(e.Time, "agent.criterion", Attr{"agent.criterion.name", body.Name}, Attr{"agent.criterion.status", body.Status})
		}
	case event.Guard:
		if span := s.calls[key(body.Bead)]; span != nil {
			span.at(e.Time, "agent.guard", Attr{"agent.guard.kind", body.Kind}, Attr{"agent.guard.action", body.Action})
		}
	case event.Budget:
		if span := s.calls[key(body.Bead)]; span != nil && body.Warning > 0 {
			span.at(e.Time, "agent.budget", Attr{"agent.budget.percent", body.Warning}, Attr{"agent.budget.used", body.Used}, Attr{"agent.budget.max", body.Max})
		}
	case event.TaskState:
		if span := s.calls[key(body.Bead)]; span != nil {
			span.at(e.Time, "agent.bead.state", Attr{"agent.bead.state", body.State})
		}
	case event.BeadEnd:
		span := s.calls[key(body.Bead)]
		if span == nil {
			return
		}
		delete(s.calls, key(body.Bead))
		span.set("agent.outcome", body.State)
		span.set("agent.bead.tokens", body.Result.Used)
		span.set("agent.bead.files", len(body.Result.Files)+body.Result.Left)
		if body.State != "committed" {
			span.fail("CRITERIA_FAILED", body.Reason)
		}
		s.end(span, e.Time)
	}
}
