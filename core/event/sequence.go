package event

import (
	"fmt"

	"github.com/seed-009c0928/agent/core/model"
)

// Sequence checks that the records of a session log follow each other as a
// session writes them. The zero value expects the first record.
type Sequence struct {
	last Seq
	open map[string]struct{} // calls of the last answer that have no result yet
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
		if _, ok := s.open[e.Call]; !ok {
			return fmt.Errorf("it is the result of call %.80q, which is unknown or already has one", e.Call)
		}
		delete(s.open, e.Call)
	case User, Steering, Compacted, Rewound, Message:
		for call := range s.open {
			return fmt.Errorf("the result of call %.80q is missing before it", call)
		}
		if m, ok := b.(Message); ok {
			s.open = callIDs(m.Content.ToolCalls())
		}
	}
	s.last = e.Seq
	return nil
}

func callIDs(calls []model.ToolCall) map[string]struct{} {
	ids := make(map[string]struct{}, len(calls))
	for _, c := range calls {
		ids[c.ID] = struct{}{}
	}
	return ids
}
