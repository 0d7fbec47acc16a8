package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
)

// groups is a journal that notes what is stored together.
type groups struct {
	coretest.MemoryJournal
	stored chan []event.Seq
	fails  int // so often it stores nothing
}

func (g *groups) AppendAll(_ context.Context, list []event.Event) error {
	var numbers []event.Seq
	for _, e := range list {
		numbers = append(numbers, e.Seq)
	}
	g.stored <- numbers
	if g.fails > 0 {
		g.fails--
		return errors.New("no answer")
	}
	return nil
}

func (g *groups) next(t *testing.T, want ...event.Seq) {
	t.Helper()
	select {
	case got := <-g.stored:
		if !slices.Equal(got, want) {
			t.Errorf("stored together: %d, want %d", got, want)
		}
	case <-time.After(coretest.Patience):
		t.Fatalf("%d are not stored", want)
	}
}

func (g *groups) none(t *testing.T) {
	t.Helper()
	if n := len(g.stored); n > 0 {
		t.Errorf("%d groups are stored: %d", n, <-g.stored)
	}
}

func numbered(from event.Seq, bodies ...event.Body) (list []event.Event) {
	for i, b := range bodies {
		list = append(list, event.Event{Seq: from + event.Seq(i), Body: b})
	}
	return list
}

func appendTo(t *testing.T, g *grouped, list []event.Event) {
	t.Helper()
	for _, e := range list {
		if err := g.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGroups: what nothing depends on is stored with what something depends on, before
// that takes effect.
func TestGroups(t *testing.T) {
	to := &groups{stored: make(chan []event.Seq, 100)}
	g := &grouped{to: to, within: time.Hour}
	appendTo(t, g, numbered(1, event.SessionStart{}, event.User{}, event.Prompt{}))
	to.none(t)
	appendTo(t, g, numbered(4, event.LLMStart{}))
	to.next(t, 1, 2, 3, 4)
	appendTo(t, g, numbered(5, event.MessageStart{}, event.Message{}, event.LLMEnd{}, event.ToolUse{}, event.Permission{}))
	to.next(t, 5, 6, 7, 8, 9)
	appendTo(t, g, numbered(10, event.ToolResult{}, event.Warning{}))
	to.next(t, 10)
	to.next(t, 11)
	appendTo(t, g, numbered(12, event.Idle{}))
	if err := g.Sync(t.Context()); err != nil || to.Syncs() != 1 {
		t.Errorf("%d syncs, error %v", to.Syncs(), err)
	}
	to.next(t, 12)
	many := make([]event.Body, MaxTogether)
	for i := range many {
		many[i] = event.User{}
	}
	appendTo(t, g, numbered(13, many...))
	if got := <-to.stored; len(got) != MaxTogether {
		t.Errorf("%d are stored together, want %d", len(got), MaxTogether)
	}
	to.none(t)
}

// TestGroupAlone: what nothing follows is stored without it.
func TestGroupAlone(t *testing.T) {
	to := &groups{stored: make(chan []event.Seq, 100)}
	g := &grouped{to: to, within: time.Nanosecond}
	appendTo(t, g, numbered(1, event.MessageStart{}))
	to.next(t, 1)
	appendTo(t, g, numbered(2, event.Idle{}))
	to.next(t, 2)
	to.none(t)
}

// TestGroupFails: what could not be stored is stored later, once, and in the same groups,
// as it may be stored already.
func TestGroupFails(t *testing.T) {
	to := &groups{stored: make(chan []event.Seq, 100), fails: 3}
	g := &grouped{to: to, within: time.Hour}
	list := numbered(1, event.User{}, event.LLMStart{}, event.MessageStart{}, event.Message{})
	appendTo(t, g, list[:1])
	for range 2 {
		if err := g.Append(t.Context(), list[1]); err == nil {
			t.Fatal("what failed is not reported")
		}
		to.next(t, 1, 2)
	}
	if err := g.Append(t.Context(), list[2]); err == nil {
		t.Fatal("what failed is not reported behind it")
	}
	to.next(t, 1, 2)
	appendTo(t, g, list[1:])
	for _, want := range [][]event.Seq{{1, 2}, {3}} {
		to.next(t, want...)
	}
	if err := g.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	to.next(t, 4)
	to.none(t)
	if fmt.Sprint(g.held, g.tried) != "[] 0" {
		t.Errorf("left: %v, %d", g.held, g.tried)
	}
}
