package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/telemetry"
)

// row is a line of the waterfall.
type row struct {
	Kind       string // model, tool, wait, subagent
	Name       string
	ID         string // anchor of what it is about, may be empty
	Seq        event.Seq
	Start, End time.Time // End is zero while it runs
	Failed     bool
	Note       string
}

// turn is the work on one input.
type turn struct {
	Title      string
	Seq        event.Seq // of the input
	Start, End time.Time
	Rows       []*row
}

// waterfall is the part of a record that is made from spans.
type waterfall struct {
	builder    *telemetry.Builder
	turns      []*turn
	children   map[string]*row     // subagents that work, by their sessions
	spanOf     map[event.Seq]*item // what an open span is about, by the event it begins with
	pageStarts []event.Seq         // the first events of the pages after the first
}

func newWaterfall(r *record) waterfall {
	return waterfall{builder: telemetry.NewBuilder(func(s *telemetry.Span) {
		r.put(r.turns, s)
		delete(r.spanOf, s.Seq)
	}), children: map[string]*row{}, spanOf: map[event.Seq]*item{}}
}

// shown reports whether what began with an event is on the page that is kept.
func (r *record) shown(seq event.Seq) bool {
	at, on := slices.BinarySearch(r.pageStarts, seq)
	if on {
		at++
	}
	return r.page == 0 || r.page == at+1
}

// put adds a span to the turn that it belongs to.
func (r *record) put(turns []*turn, s *telemetry.Span) {
	if len(turns) == 0 {
		r.turns = []*turn{{Title: "Before the first input", Start: s.Start, End: s.Start}}
		turns = r.turns
	}
	t := turns[len(turns)-1]
	if s.Kind != telemetry.KindStart { // which may belong to the input after it
		for i := len(turns) - 2; i >= 0 && t.Seq > s.Seq; i-- {
			t = turns[i]
		}
	}
	if t.Start.After(s.Start) {
		t.Start = s.Start
	}
	if t.End.Before(s.End) {
		t.End = s.End
	}
	if l := r.row(s); l != nil && r.shown(s.Seq) {
		t.Rows = append(t.Rows, l)
	}
}

// row returns a span as it is shown; nil if it has no line.
func (r *record) row(s *telemetry.Span) *row {
	l := &row{Seq: s.Seq, Name: s.Name, Start: s.Start, End: s.End, Failed: s.Error != ""}
	it := r.spanOf[s.Seq]
	if it != nil {
		l.ID = it.ID
	}
	switch s.Kind {
	case telemetry.KindChat:
		l.Kind, l.Name, l.Note = "model", modelName(s.Provider, s.Model), chatNote(s)
	case telemetry.KindCompaction:
		l.Kind = "model"
	case telemetry.KindTool:
		l.Kind, l.Name = "tool", s.Tool
		if it != nil && it.Call != nil {
			l.Note = display.Arguments(it.Call.Args, r.About.Cwd, 100)
			l.Failed = it.Call.Result != nil && (it.Call.Result.IsError || display.CommandFailed(*it.Call.Result))
		}
	case telemetry.KindQuestion:
		l.Kind, l.Name = "wait", "wait for an answer"
		if it != nil {
			for _, q := range it.Questions {
				if q.Seq == s.Seq {
					l.Note = display.OneLine(q.Title, 100)
				}
			}
		}
	case telemetry.KindStart:
		l.Kind = "tool"
	default:
		return nil
	}
	return l
}

// chatNote says what a model call used, or why it failed.
func chatNote(s *telemetry.Span) string {
	if s.Error != "" {
		return display.OneLine(cmp.Or(s.Message, s.Error), 200)
	}
	if s.Usage.Total() == 0 {
		return ""
	}
	note := fmt.Sprintf("%s in (%s cached), %s out", display.Count(s.Usage.Input), display.Count(s.Usage.CachedInput), display.Count(s.Usage.Output))
	if s.First > 0 {
		note += ", first after " + display.Duration(s.First)
	}
	return note
}

// starts adds a subagent, whose spans are in its own session.
func (r *record) starts(e event.Event, b event.SubagentStart, it *item) {
	l := &row{Kind: "subagent", Name: b.Name, ID: it.ID, Seq: e.Seq, Start: e.Time}
	r.children[b.Child] = l
	if n := len(r.turns); n > 0 && r.shown(e.Seq) {
		r.turns[n-1].Rows = append(r.turns[n-1].Rows, l)
	}
}

func (r *record) ends(e event.Event, b event.SubagentEnd) {
	if l := r.children[b.Child]; l != nil {
		l.End, l.Failed = e.Time, b.Error != ""
		delete(r.children, b.Child)
	}
}

// timeline returns the inputs with their lines in order, as they are now.
func (r *record) timeline() []*turn {
	turns := make([]*turn, len(r.turns))
	for i, t := range r.turns {
		c := *t
		c.Rows = slices.Clone(t.Rows)
		turns[i] = &c
	}
	for _, s := range r.builder.Open(r.Ended) {
		if len(turns) > 0 {
			r.put(turns, &s)
		}
	}
	for _, t := range turns {
		for i, l := range t.Rows {
			if l.End.IsZero() {
				c := *l
				c.End = r.Ended
				t.Rows[i] = &c
			}
		}
		slices.SortStableFunc(t.Rows, func(a, b *row) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Seq, b.Seq)) })
	}
	return turns
}
