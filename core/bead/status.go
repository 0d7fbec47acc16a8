package bead

import (
	"iter"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// Status is what the events of a task add up to.
type Status struct {
	Task    event.TaskStart `json:"task"`
	State   State           `json:"state"`
	Reason  string          `json:"reason,omitempty"`
	Beads   []Bead          `json:"beads"`
	Used    int             `json:"used"` // tokens
	CostUSD float64         `json:"costUsd,omitempty"`
	Started time.Time       `json:"started"`
	Changed time.Time       `json:"changed"`

	last    event.Seq
	warned  int // the highest percentage that was warned about
	resumed int // beads before the last resume, whose failures count no more
}

// Bead is one attempt at a task.
type Bead struct {
	event.BeadStart
	State    State             `json:"state"`
	Reason   string            `json:"reason,omitempty"`
	Result   *event.BeadResult `json:"result,omitempty"`
	Criteria []event.Criterion `json:"criteria,omitempty"`
	Guards   []event.Guard     `json:"guards,omitempty"`
	End      *event.BeadEnd    `json:"end,omitempty"`
	Started  time.Time         `json:"started"`

	base     string // snapshot of the beginning of its worktree
	snapshot string // of what is merged or verified
	merging  bool   // Before is that of the merge
	seq      event.Seq
	used     int // tokens
	cost     float64
}

// Read returns the status that a journal's events lead to.
func Read(events iter.Seq2[event.Event, error]) (Status, error) {
	s := Status{Beads: []Bead{}}
	for e, err := range events {
		if err != nil {
			return s, err
		}
		s.Apply(e)
	}
	return s, nil
}

// Apply adds an event. Those that are not about tasks change nothing.
func (s *Status) Apply(e event.Event) {
	s.last = e.Seq
	switch b := e.Body.(type) {
	case event.TaskStart:
		if s.Task.Task == "" {
			s.Started, s.State = e.Time, Planned
		}
		s.Task = b
	case event.TaskState:
		s.apply(b)
	case event.BeadStart:
		s.Beads = append(s.Beads, Bead{BeadStart: b, State: Planned, Started: e.Time, seq: e.Seq})
	case event.Criterion:
		if n := s.bead(b.Bead); n != nil {
			n.Criteria = append(n.Criteria, b)
		}
	case event.Guard:
		if n := s.bead(b.Bead); n != nil {
			n.Guards = append(n.Guards, b)
		}
	case event.Budget:
		if n := s.bead(b.Bead); n != nil {
			n.used, n.cost = n.used+b.Used-s.Used, n.cost+b.CostUSD-s.CostUSD
		}
		s.Used, s.CostUSD, s.warned = b.Used, b.CostUSD, max(s.warned, b.Warning)
	case event.BeadEnd:
		if n := s.bead(b.Bead); n != nil {
			n.State, n.Reason, n.End, n.Result = State(b.State), b.Reason, &b, &b.Result
		}
	default:
		return
	}
	s.Changed = e.Time
}

func (s *Status) apply(b event.TaskState) {
	n := s.bead(b.Bead)
	switch {
	case n != nil:
		switch n.State = State(b.State); n.State {
		case Analysing:
			n.base = b.Snapshot
		case Merging, Verifying:
			n.Result, n.snapshot, n.Criteria, n.Guards = b.Result, b.Snapshot, nil, nil
			if b.Before != "" {
				n.Before, n.merging = b.Before, true
			}
		}
	case b.Bead == 0:
		if s.State.Final() && State(b.State) == Running {
			s.resumed = len(s.Beads) - len(s.open())
		}
		s.State, s.Reason = State(b.State), b.Reason
	}
}

// bead returns the bead with a number, or nil.
func (s *Status) bead(n int) *Bead {
	if n < 1 || n > len(s.Beads) {
		return nil
	}
	return &s.Beads[n-1]
}

// open returns the beads that have begun and not ended, which are the last ones.
func (s *Status) open() (open []*Bead) {
	for i := range s.Beads {
		if s.Beads[i].End == nil {
			open = append(open, &s.Beads[i])
		}
	}
	return open
}

// ended returns the last bead that ended, or nil.
func (s *Status) ended() *Bead { return s.bead(len(s.Beads) - len(s.open())) }

// lastOf returns the last bead of a step that ended, or nil.
func (s *Status) lastOf(step string) *Bead {
	for i := len(s.Beads) - 1; i >= 0; i-- {
		if b := &s.Beads[i]; b.End != nil && b.Step == step {
			return b
		}
	}
	return nil
}

// stuck returns a bead that ended in a state since the last resume, or nil.
func (s *Status) stuck(state State) *Bead {
	for i := s.resumed; i < len(s.Beads); i++ {
		if b := &s.Beads[i]; b.End != nil && b.State == state {
			return b
		}
	}
	return nil
}

// sinceGreen returns the beads that ended after the last verified state.
func (s *Status) sinceGreen() []Bead {
	from := 0
	for i, b := range s.Beads {
		if b.State == Committed && b.End != nil {
			from = i + 1
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Beads[from:]), func(b Bead) bool { return b.End == nil })
}

// Done returns the names of the steps that are done.
func (s *Status) Done() map[string]bool {
	done := map[string]bool{}
	for _, b := range s.Beads {
		if b.Step != "" && b.State == Committed {
			done[b.Step] = true
		}
	}
	return done
}

// step returns the step with a name, or nil.
func (s *Status) step(name string) *event.TaskStep {
	for i := range s.Task.Steps {
		if s.Task.Steps[i].Name == name {
			return &s.Task.Steps[i]
		}
	}
	return nil
}

// criteria are those of the task and of a step.
func (s *Status) criteria(step string) []event.TaskCriterion {
	all := s.Task.Criteria
	if st := s.step(step); st != nil {
		all = append(all[:len(all):len(all)], st.Criteria...)
	}
	return all
}
