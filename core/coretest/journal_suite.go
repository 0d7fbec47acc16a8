package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// OpenJournal opens one and the same log: the first call creates it, later ones are by
// other processes. A log that only one may have open refuses the others.
type OpenJournal func() (core.Journal, error)

// TestJournal checks a journal against the contract of [core.Journal]. The factory
// returns what opens a new log each time. Journals that are io.Closers are closed.
func TestJournal(t *testing.T, factory func(t *testing.T) OpenJournal) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, open OpenJournal)
	}{
		{"round trip", journalRoundTrip},
		{"replay after a record", journalAfter},
		{"replay stops", journalStops},
		{"replay while appending", journalConcurrent},
		{"survives without a close", journalSurvives},
		{"one writer", journalOneWriter},
		{"a session", journalSession},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, factory(t)) })
	}
}

func opened(t *testing.T, open OpenJournal) core.Journal {
	t.Helper()
	j, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeJournal(t, j) })
	return j
}

func closeJournal(t *testing.T, j core.Journal) {
	if c, ok := j.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func record(seq event.Seq, body event.Body) event.Event {
	return event.Event{
		V: event.Version, Seq: seq, Time: time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC), Session: "s", Call: "c1",
		Required: event.Rebuilds(body), Body: body,
	}
}

// oddRecords are records of odd content, with gaps in their numbers: deltas are not
// recorded.
func oddRecords() []event.Event {
	text := "<b> & \"quotes\" \\ \u2028 ü 🙂\x00\n\tend"
	return []event.Event{
		record(1, event.SessionStart{Cwd: "/work", Model: "m"}),
		record(2, event.User{Content: model.Parts{model.Text{Text: text}, model.Image{MediaType: "image/png", Blob: strings.Repeat("0", 64)}}, Run: "r"}),
		record(7, event.Message{Content: model.Parts{model.Text{Text: strings.Repeat(text, 1<<15)}, model.ToolCall{ID: "c1", Name: "shell", Args: `{"x": "` + "é" + `"}`}}}),
		record(8, event.ToolResult{Name: "shell", Content: model.TextParts(""), Structured: json.RawMessage(`{"b":1,"a":[1e3,null]}`)}),
		record(100, event.Host{Name: "example.com/ticket", Data: json.RawMessage(`{"id":9007199254740993}`)}),
		record(1<<40, event.Unknown{Kind: "of_a_later_version", Raw: json.RawMessage(`{"v":1,"seq":1099511627776,"id":"s-1099511627776","type":"of_a_later_version","more":{"x":1}}`)}),
	}
}

func appendAll(t *testing.T, j core.Journal, list []event.Event) {
	t.Helper()
	for _, e := range list {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatalf("append record %d: %v", e.Seq, err)
		}
	}
}

// replayed returns the records after one, as JSON.
func replayed(t *testing.T, j core.Journal, after event.Seq) []string {
	t.Helper()
	var list []event.Event
	for e, err := range j.Replay(t.Context(), after) {
		if err != nil {
			t.Fatalf("replay after %d: %v", after, err)
		}
		list = append(list, e)
	}
	return asJSON(t, list)
}

func asJSON(t *testing.T, list []event.Event) []string {
	t.Helper()
	lines := make([]string, len(list))
	for i, e := range list {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(text)
	}
	return lines
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: record %d is\n%.300s\nwant\n%.300s", what, i, got[i], want[i])
		}
	}
}

func journalRoundTrip(t *testing.T, open OpenJournal) {
	j := opened(t, open)
	if got := replayed(t, j, 0); len(got) != 0 {
		t.Errorf("a new log has %d records", len(got))
	}
	appendAll(t, j, oddRecords())
	if err := j.Sync(t.Context()); err != nil {
		t.Errorf("sync: %v", err)
	}
	same(t, "replay", replayed(t, j, 0), asJSON(t, oddRecords()))
}

func journalAfter(t *testing.T, open OpenJournal) {
	j := opened(t, open)
	appendAll(t, j, oddRecords())
	for after, want := range map[event.Seq]int{0: 6, 1: 5, 2: 4, 5: 4, 7: 3, 99: 2, 1 << 40: 0, 1 << 41: 0} {
		if got := replayed(t, j, after); len(got) != want {
			t.Errorf("after %d: %d records, want %d", after, len(got), want)
		}
	}
}

func journalStops(t *testing.T, open OpenJournal) {
	j := opened(t, open)
	appendAll(t, j, oddRecords())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range j.Replay(ctx, 0) {
		if last = err; err != nil {
			break
		}
		if n++; n == 2 {
			cancel()
		}
	}
	if n == 2 && !errors.Is(last, context.Canceled) {
		t.Errorf("a replay whose context ended stops with error %v", last)
	}
	for range j.Replay(t.Context(), 0) {
		break
	}
	appendAll(t, j, []event.Event{record(1<<41, event.Warning{Code: "X"})}) // no replay is in the way
}

func journalConcurrent(t *testing.T, open OpenJournal) {
	j := opened(t, open)
	const total = 50
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range event.Seq(total) {
			if err := j.Append(t.Context(), record(i+1, event.Warning{Code: fmt.Sprint(i)})); err != nil {
				t.Errorf("append while replaying: %v", err)
				return
			}
		}
	})
	for range 10 {
		last := event.Seq(0)
		for e, err := range j.Replay(t.Context(), 0) {
			if err != nil || e.Seq != last+1 {
				t.Errorf("record %d after %d, error %v", e.Seq, last, err)
				break
			}
			last = e.Seq
		}
	}
	writing.Wait()
	if got := replayed(t, j, 0); len(got) != total {
		t.Errorf("%d records, want %d", len(got), total)
	}
}

// journalSurvives: what Append returned for is there for the next process, if the
// first one is killed, which neither syncs nor closes.
func journalSurvives(t *testing.T, open OpenJournal) {
	j, err := open()
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, oddRecords())
	next, err := open()
	if err != nil { // only one may have it open: the death of the first is its close
		closeJournal(t, j)
		next, err = open()
	} else {
		t.Cleanup(func() { closeJournal(t, j) })
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeJournal(t, next) })
	same(t, "the next process", replayed(t, next, 0), asJSON(t, oddRecords()))
}

// journalOneWriter: of two processes, the one that opened the log last writes it.
func journalOneWriter(t *testing.T, open OpenJournal) {
	first := opened(t, open)
	appendAll(t, first, oddRecords()[:2])
	second, err := open()
	if err != nil {
		return // it has a lock
	}
	t.Cleanup(func() { closeJournal(t, second) })
	if err := first.Append(t.Context(), record(3, event.Warning{Code: "LATE"})); !errors.Is(err, core.ErrFenced) {
		t.Errorf("the first writer appends after the second opened the log: error %v, want core.ErrFenced", err)
	}
	appendAll(t, second, []event.Event{record(3, event.Warning{Code: "NEXT"})})
	if err := first.Append(t.Context(), record(4, event.Warning{Code: "LATE"})); !errors.Is(err, core.ErrFenced) {
		t.Errorf("a later append of the first writer: error %v, want core.ErrFenced", err)
	}
	if got := replayed(t, second, 2); len(got) != 1 || !strings.Contains(got[0], "NEXT") {
		t.Errorf("the log has %v", got)
	}
}

// journalSession runs a session on the journal, and resumes it with another one.
func journalSession(t *testing.T, open OpenJournal) {
	j, err := open()
	if err != nil {
		t.Fatal(err)
	}
	first := Model(Say("One."))
	runSession(t, j, first)
	closeJournal(t, j)
	j = opened(t, open)
	second := Model(Say("Two."))
	runSession(t, j, second)
	before, after := first.Requests()[0].Messages, second.Requests()[0].Messages
	if len(after) != 3 || !slices.EqualFunc(before, after[:len(before)], func(a, b model.Message) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("the resumed session sends %v, and sent %v", after, before)
	}
}

func runSession(t *testing.T, j core.Journal, p model.Provider) {
	t.Helper()
	s, err := core.New(t.Context(), core.Config{ID: "s", Provider: p, Env: refusingEnv{}, Policy: AllowAll, Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), core.TextInput("go")); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
