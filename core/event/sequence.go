package event

import (
	"fmt"
	"slices"

	"github.com/seed-009c0928/agent/core/model"
)

// Sequence checks that the records of a session log follow each other as a
// session writes them. The zero value expects the first record.
type Sequence struct {
	last Seq
	open []string // calls of the last answer that have no result yet
}

// Next checks the next record. The error says why it cannot follow the earlier
// ones: its number is not greater than the last, it is the result of a call that
// is not open, or a call before it has no result.
func (s *Sequence) Next(e Event) error {
	if e.Seq <= s.last {
		return fmt.Errorf("it has number %d and follows record number %d: the records are doubled or out of order", e.Seq, s.last)
	}
	switch b := e.Body.(type) {
	case ToolResult:
		at := slices.Index(s.open, e.Call)
		if at < 0 {
			return fmt.Errorf("it is the result of call %.80q, which is unknown or already has one", e.Call)
		}
		s.open = slices.Delete(s.open, at, at+1)
	case User, Steering, Compacted, Rewound, Message:
		if len(s.open) > 0 {
			return fmt.Errorf("the result of call %.80q is missing before it", s.open[0])
		}
		if m, ok := b.(Message); ok {
			s.expect(m.Content)
		}
	}
	s.last = e.Seq
	return nil
}

// expect opens the calls of an answer.
func (s *Sequence) expect(answer model.Parts) {
	for _, p := range answer {
		if c, ok := p.(model.ToolCall); ok && !slices.Contains(s.open, c.ID) {
			s.open = append(s.open, c.ID)
		}
	}
}
