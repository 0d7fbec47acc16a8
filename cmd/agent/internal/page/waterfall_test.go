package page

import (
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/telemetry"
)

// TestTimelineHasTheSpans compares the timeline with the spans of the same events.
func TestTimelineHasTheSpans(t *testing.T) {
	t.Parallel()
	list := workday()
	for cut := range list {
		r, err := readRecord(t.Context(), memory{"s": list[:cut+1]}, "s", cents, 0)
		if err != nil {
			t.Fatal(err)
		}
		lines := map[event.Seq]*row{}
		for _, turn := range r.timeline() {
			for _, l := range turn.Rows {
				if l.Kind != "subagent" {
					lines[l.Seq] = l
				}
			}
		}
		for _, s := range telemetry.Spans(list[:cut+1]) {
			if s.Kind == telemetry.KindRun {
				continue
			}
			l := lines[s.Seq]
			if l == nil || !l.Start.Equal(s.Start) || !l.End.Equal(s.End) {
				t.Errorf("after %d events, %s from %s to %s is the line %+v", cut+1, s.Name, s.Start, s.End, l)
			}
			delete(lines, s.Seq)
		}
		for _, l := range lines {
			t.Errorf("after %d events, no span is the line %+v", cut+1, l)
		}
	}
}
