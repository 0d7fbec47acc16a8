package event_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
)

// TestParked: a log ends with the questions of the last run that nobody answered.
func TestParked(t *testing.T) {
	asked := event.Result{Questions: []event.Question{{QID: "a"}, {QID: "b"}}}
	for _, c := range []struct {
		want string
		log  []event.Body
	}{
		{"", nil},
		{"a b", []event.Body{event.User{}, event.Question{QID: "c"}, asked}},
		{"b", []event.Body{asked, event.Answer{QID: "a"}, event.Answer{QID: "unknown"}}},
		{"b a", []event.Body{asked, event.Result{Questions: []event.Question{{QID: "b"}, {QID: "a"}}}}},
		{"", []event.Body{asked, event.User{}}},
		{"", []event.Body{asked, event.Answer{QID: "b"}, event.Answer{QID: "a"}}},
		{"", []event.Body{asked, event.Result{}}},
	} {
		var p event.Parked
		for _, b := range c.log {
			before := p
			known := ids(before)
			p.Add(b)
			if ids(before) != known {
				t.Errorf("%T changed what was read before: %s, not %s", b, ids(before), known)
			}
			if changed := ids(p) != known; changed && !event.ParkedBy(b.Type()) {
				t.Errorf("ParkedBy does not know %s", b.Type())
			}
		}
		if ids(p) != c.want {
			t.Errorf("%v leaves %q, not %q", c.log, ids(p), c.want)
		}
	}
	if event.ParkedBy("question") {
		t.Error("a question that is asked parks nothing: the result does")
	}
}

func ids(p event.Parked) string {
	var list []string
	for _, q := range p {
		list = append(list, q.QID)
	}
	return strings.Join(list, " ")
}
