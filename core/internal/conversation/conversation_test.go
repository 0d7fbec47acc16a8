package conversation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/conversation"
	"github.com/seed-009c0928/agent/core/model"
)

// records is a session log of two inputs with a call, a summary, a third input.
func records() []event.Event {
	bodies := []event.Body{
		event.Prompt{Text: "Be good.", Model: "m"},
		event.User{Content: model.TextParts("first")},
		event.Message{Content: model.Parts{model.ToolCall{ID: "c", Name: "echo", Args: "{}"}}, Usage: model.Usage{Input: 10, Output: 5}, Model: "m"},
		event.ToolResult{Name: "echo", Content: model.TextParts("one")},
		event.Message{Content: model.TextParts("It is one."), Usage: model.Usage{Input: 20, Output: 5}, Model: "m"},
		event.User{Content: model.TextParts("second")},
		event.Message{Content: model.TextParts("Done."), Usage: model.Usage{Input: 30, Output: 5}, Model: "m"},
		event.Compacted{Content: model.TextParts("notes"), Kept: 2, Usage: model.Usage{Input: 40, Output: 5}, Model: "m"},
		event.User{Content: model.TextParts("third")},
		event.Message{Content: model.TextParts("Yes."), Usage: model.Usage{Input: 50, Output: 5}, Model: "m"},
	}
	list := make([]event.Event, len(bodies))
	for i, b := range bodies {
		list[i] = event.Event{Seq: event.Seq(i + 1), Body: b}
		if _, ok := b.(event.ToolResult); ok {
			list[i].Call = "c"
		}
	}
	return list
}

func read(t *testing.T, list []event.Event) *conversation.Conversation {
	t.Helper()
	c := &conversation.Conversation{Price: func(string, string, model.Usage) (float64, bool) { return 1, true }}
	for _, e := range list {
		if err := c.Apply(e, conversation.Options{LoopWindow: 10}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func sent(c *conversation.Conversation) string {
	text, _ := json.Marshal(c.Messages())
	return string(text)
}

// TestRewind: the conversation is as before the input, byte for byte, whatever was
// compacted since; costs stay; what the summary holds forgets the input, too.
func TestRewind(t *testing.T) {
	t.Parallel()
	all := records()
	for _, at := range []int{1, 5, 8} { // indexes of the inputs
		seq := all[at].Seq
		want, c := read(t, all[:at]), read(t, all)
		if !c.Rewind(seq) {
			t.Fatalf("there is no input %d: %v", seq, c.View().Inputs())
		}
		if sent(c) != sent(want) || c.Turns != want.Turns || !slices.Equal(c.View().Inputs(), want.View().Inputs()) {
			t.Errorf("before input %d: %s, want %s", seq, sent(c), sent(want))
		}
		if c.Cost != 5 || c.Usage.Total() != 175 {
			t.Errorf("input %d: cost %v and %d tokens have changed", seq, c.Cost, c.Usage.Total())
		}
		if kept := c.Memory.Text(nil, 1000); strings.Contains(kept, all[at].Body.(event.User).Content.Text()) || kept != want.Memory.Text(nil, 1000) {
			t.Errorf("input %d: summaries still hold %q", seq, kept)
		}
		if c.Rewind(seq) {
			t.Errorf("input %d was taken back twice", seq)
		}
	}
}

// TestRewoundLog: a log with rewinds, also nested ones, gives the same conversation as
// one without what they take back.
func TestRewoundLog(t *testing.T) {
	t.Parallel()
	all := records()
	last := func(list []event.Event, bodies ...event.Body) []event.Event {
		list = slices.Clone(list)
		for _, b := range bodies {
			list = append(list, event.Event{Seq: list[len(list)-1].Seq + 1, Body: b})
		}
		return list
	}
	again := []event.Body{event.User{Content: model.TextParts("other")}, event.Message{Content: model.TextParts("Other.")}}
	want := read(t, last(all[:5], again...))
	for name, log := range map[string][]event.Event{
		"once":   last(all, append([]event.Body{event.Rewound{Input: 6}}, again...)...),
		"twice":  last(all, append([]event.Body{event.Rewound{Input: 9}, event.Rewound{Input: 6}}, again...)...),
		"nested": last(all, append([]event.Body{event.Rewound{Input: 9}, event.User{Content: model.TextParts("x")}, event.Rewound{Input: 12}, event.Rewound{Input: 6}}, again...)...),
	} {
		if c := read(t, log); sent(c) != sent(want) || c.Turns != want.Turns {
			t.Errorf("%s: %s, want %s", name, sent(c), sent(want))
		}
	}
	c := &conversation.Conversation{}
	if err := c.Apply(event.Event{Seq: 3, Body: event.Rewound{Input: 2}}, conversation.Options{}); err == nil || !strings.Contains(err.Error(), "record 3 takes back input 2, which is missing") {
		t.Errorf("error %v", err)
	}
}
