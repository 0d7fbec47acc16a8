package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// everyType returns a log of many batches with records of every type.
func everyType(t *testing.T) []byte {
	t.Helper()
	golden, err := os.ReadFile(filepath.Join("..", "event", "testdata", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var log []byte
	var seq, input event.Seq
	write := func(e event.Event) {
		seq++
		if _, ok := e.Body.(event.User); ok {
			input = seq
		}
		e.Seq, e.ID, e.Session = seq, "", "s"
		line, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		log = append(append(log, line...), '\n')
	}
	for round := range 12 {
		for line := range bytes.Lines(golden) {
			var e event.Event
			if err := e.UnmarshalJSON(line); err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.ToolResult:
				e.Call = fmt.Sprint("call-", round)
				write(newEvent(0, event.Message{Content: model.Parts{model.ToolCall{ID: e.Call, Name: b.Name, Args: "{}"}}, Usage: model.Usage{Input: 5, Output: 1}}))
			case event.Rewound:
				e.Body = event.Rewound{Input: input}
			case event.User:
				b.Input = fmt.Sprint("input-", round)
				write(newEvent(0, b))
			}
			write(e)
		}
	}
	return log
}

// TestReadingTheQuickWay: what a session is rebuilt from, and what it is then, are the same
// as if encoding/json read every record, which it does with those that begin with a space.
func TestReadingTheQuickWay(t *testing.T) {
	t.Parallel()
	log := everyType(t)
	open := func(log []byte) (list []event.Event, state string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), log, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := store.Open(dir, "s", store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		list = replay(t, j, 0)
		if tail := replay(t, j, 300); !reflect.DeepEqual(tail, list[300:]) {
			t.Errorf("after record 300 there are %d", len(tail))
		}
		s, err := core.New(t.Context(), core.Config{ID: "s", Provider: coretest.Model(), Env: env.NewMemory("/", nil), Policy: coretest.DenyAll, Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return list, fmt.Sprintf("%s %v %+v %+v", s.State(), s.Inputs(), s.Pending(), s.Messages())
	}
	got, state := open(log)
	want, wanted := open(bytes.ReplaceAll(log, []byte("{\"v\":1,"), []byte("{ \"v\":1,")))
	if len(got) < 500 || !slices.EqualFunc(got, want, func(a, b event.Event) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("%d records are not those %d that encoding/json reads", len(got), len(want))
	}
	if state != wanted {
		t.Errorf("the session is\n%.3000s\nwanted\n%.3000s", state, wanted)
	}
}

// TestDamageInAnyBatch: a record that cannot be read is told by its line, and those before
// it are there, wherever it is; a reader can stop anywhere.
func TestDamageInAnyBatch(t *testing.T) {
	t.Parallel()
	var log []byte
	for i := range 600 {
		line, err := newEvent(i+1, event.Idle{State: "idle", Stop: "done"}).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		log = append(append(log, line...), '\n')
	}
	for _, at := range []int{0, 1, 15, 16, 17, 47, 48, 300, 599} {
		damaged := bytes.Split(bytes.Clone(log), []byte("\n"))
		damaged[at][len(damaged[at])-2] ^= 0x20 // a quote
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), bytes.Join(damaged, []byte("\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		n, found := 0, error(nil)
		for _, err := range store.Read(t.Context(), dir, "s", 0) {
			if found = err; err == nil {
				n++
			}
		}
		if corrupt, ok := found.(*store.CorruptError); !ok || corrupt.Line != at+1 || n != at {
			t.Errorf("damage in line %d: %v after %d records", at+1, found, n)
		}
		n = 0
		for range store.Read(t.Context(), dir, "s", 0) {
			if n++; n >= at {
				break
			}
		}
		if n > max(at, 1) {
			t.Errorf("%d records after a stop at %d", n, at)
		}
	}
}
