package event

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is a replayer of logged events.
type journal struct {
	mu     sync.Mutex
	events []Event
	asked  int
}

func (j *journal) append(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !e.IsDelta() {
		j.events = append(j.events, e)
	}
}

func (j *journal) Replay(ctx context.Context, after Seq) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		j.mu.Lock()
		events := slices.Clone(j.events)
		j.asked++
		j.mu.Unlock()
		for _, e := range events {
			if err := ctx.Err(); err != nil {
				yield(Event{}, err)
				return
			}
			if e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}

func logged(seq Seq) Event {
	return Event{V: 1, Seq: seq, Session: "s", Body: ToolUse{Name: fmt.Sprint(seq)}}
}

func word(seq Seq, text string) Event {
	return Event{V: 1, Seq: seq, Session: "s", Body: MessageDelta{text}}
}

// read collects a reader's events until the log closes.
func read(t *testing.T, l *Log, after Seq) []Event {
	t.Helper()
	var got []Event
	for e, err := range l.Read(t.Context(), after) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

func seqs(events []Event) []Seq {
	var out []Seq
	for _, e := range events {
		out = append(out, e.Seq)
	}
	return out
}

func TestLogReaders(t *testing.T) {
	l := NewLog(100, nil)
	for s := Seq(1); s <= 5; s++ {
		l.Append(logged(s))
	}
	l.Close()
	for after, want := range map[Seq][]Seq{0: {1, 2, 3, 4, 5}, 3: {4, 5}, 5: nil, 99: nil} {
		if got := seqs(read(t, l, after)); !slices.Equal(got, want) {
			t.Errorf("after %d: got %v, want %v", after, got, want)
		}
	}
}

func TestLogSequenceCanBeReadAgain(t *testing.T) {
	l := NewLog(10, nil)
	l.Append(logged(1))
	l.Close()
	events := l.Read(t.Context(), 0)
	for range 2 {
		n := 0
		for range events {
			n++
		}
		if n != 1 {
			t.Errorf("got %d events, want 1", n)
		}
	}
}

func TestLogLateJoinerAndEviction(t *testing.T) {
	var j journal
	l := NewLog(4, j.Replay)
	for s := Seq(1); s <= 100; s++ {
		e := logged(s)
		if s%3 == 0 {
			e = word(s, "x")
		}
		j.append(e)
		l.Append(e)
	}
	l.Close()
	have := seqs(read(t, l, 0))
	for s := Seq(1); s <= 100; s++ {
		if s%3 != 0 && !slices.Contains(have, s) {
			t.Errorf("logged event %d is missing", s)
		}
	}
	if !slices.IsSorted(have) || len(slices.Compact(slices.Clone(have))) != len(have) {
		t.Errorf("out of order or twice: %v", have)
	}
	if have[len(have)-1] != 100 || j.asked == 0 {
		t.Errorf("last event %d, replayer asked %d times", have[len(have)-1], j.asked)
	}
	if l.mu.Lock(); len(l.events) >= 8 {
		t.Errorf("the window holds %d events", len(l.events))
	}
	l.mu.Unlock()
}

func TestLogForget(t *testing.T) {
	var j journal
	for s := Seq(1); s <= 3; s++ {
		j.append(logged(s))
	}
	l := NewLog(10, j.Replay)
	l.Forget(3)
	l.Append(logged(4))
	j.append(logged(4))
	l.Close()
	if got := seqs(read(t, l, 1)); !slices.Equal(got, []Seq{2, 3, 4}) {
		t.Errorf("got %v, want 2 and 3 replayed, and 4 once", got)
	}
	l.Forget(1)
	if got := seqs(read(t, l, 3)); !slices.Equal(got, []Seq{4}) {
		t.Errorf("forgetting less returned %v", got)
	}
}

func TestLogCoalesces(t *testing.T) {
	delta := func(seq Seq, call string, b Body) Event {
		return Event{V: 1, Seq: seq, Session: "s", Call: call, Body: b}
	}
	l := NewLog(100, nil)
	for _, e := range []Event{
		delta(1, "", ReasoningDelta{"h"}), delta(2, "", ReasoningDelta{"m"}),
		delta(3, "", MessageDelta{"a"}), delta(4, "", MessageDelta{"b"}), delta(5, "", MessageDelta{"c"}),
		logged(6),
		delta(7, "c1", ToolOutputDelta{"1"}), delta(8, "c2", ToolOutputDelta{"2"}), delta(9, "c2", ToolOutputDelta{"3"}),
		delta(10, "c2", ToolProgress{Done: 1}), delta(11, "c2", ToolProgress{Done: 2}),
		{Seq: 12, Session: "s"},
		{Seq: 13, Session: "s"},
		delta(14, "", MessageDelta{"end"}),
	} {
		l.Append(e)
	}
	l.Close()
	want := []Event{
		delta(2, "", ReasoningDelta{"hm"}), delta(5, "", MessageDelta{"abc"}), logged(6),
		delta(7, "c1", ToolOutputDelta{"1"}), delta(9, "c2", ToolOutputDelta{"23"}), delta(11, "c2", ToolProgress{Done: 2}),
		{Seq: 12, Session: "s"},
		{Seq: 13, Session: "s"},
		delta(14, "", MessageDelta{"end"}),
	}
	for range 2 { // a reader must not change what the next one sees
		if got := read(t, l, 0); !slices.Equal(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// A reader that blocks does not block the writer. When it continues, it gets
// every logged event, from the replayer if the window has moved on.
func TestLogSlowReader(t *testing.T) {
	const n = 5000
	var j journal
	l := NewLog(16, j.Replay)
	first, written := make(chan struct{}), make(chan struct{})
	var got []Event
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range l.Read(t.Context(), 0) {
			if err != nil {
				t.Error(err)
				return
			}
			if got = append(got, e); len(got) == 1 {
				close(first)
				<-written
			}
		}
	})
	for s := Seq(1); s <= n; s++ {
		e := logged(s)
		if s%5 != 1 {
			e = word(s, "x")
		}
		j.append(e)
		l.Append(e) // returns although the reader is blocked
		if s == 1 {
			<-first
		}
	}
	close(written)
	l.Close()
	wg.Wait()
	var logs int
	for _, e := range got {
		if !e.IsDelta() {
			if want := Seq(5*logs + 1); e.Seq != want {
				t.Fatalf("got logged event %d, want %d", e.Seq, want)
			}
			logs++
		}
	}
	if logs != n/5 {
		t.Errorf("got %d logged events, want %d", logs, n/5)
	}
}

// Many readers, joining at any time, all see every logged event once, in order,
// and the complete text as long as they keep up with the window.
func TestLogManyReaders(t *testing.T) {
	const n, readers = 2000, 16
	var j journal
	l := NewLog(2*n, j.Replay)
	var wg sync.WaitGroup
	texts, counts := make([]strings.Builder, readers), make([]int, readers)
	start := func(i int) {
		wg.Go(func() {
			var last Seq
			for e, err := range l.Read(t.Context(), 0) {
				if err != nil || e.Seq <= last {
					t.Errorf("reader %d: event %d after %d, %v", i, e.Seq, last, err)
					return
				}
				last = e.Seq
				if d, ok := e.Body.(MessageDelta); ok {
					texts[i].WriteString(d.Text)
				} else {
					counts[i]++
				}
			}
		})
	}
	var text strings.Builder
	for s := Seq(1); s <= n; s++ {
		if s%(n/readers) == 1 {
			start(int(s) / (n / readers))
		}
		e := logged(s)
		if s%2 == 0 {
			e = word(s, fmt.Sprint(s, " "))
			text.WriteString(e.Body.(MessageDelta).Text)
		}
		j.append(e)
		l.Append(e)
	}
	l.Close()
	wg.Wait()
	for i := range readers {
		if counts[i] != n/2 || texts[i].String() != text.String() {
			t.Errorf("reader %d: %d logged events, %d bytes of text; want %d, %d", i, counts[i], texts[i].Len(), n/2, text.Len())
		}
	}
}

func TestLogCloseWakesReaders(t *testing.T) {
	l := NewLog(10, nil)
	l.Append(logged(1))
	var wg sync.WaitGroup
	seen := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			n := 0
			for range l.Read(t.Context(), 0) {
				n++
				seen <- struct{}{}
			}
			if n != 2 {
				t.Errorf("got %d events, want 2", n)
			}
		})
	}
	for range 4 {
		<-seen
	}
	l.Append(logged(2))
	l.Close()
	l.Close() // idempotent
	for range 4 {
		<-seen
	}
	wg.Wait()
}

func TestLogContext(t *testing.T) {
	t.Run("while waiting", func(t *testing.T) {
		l := NewLog(10, nil)
		l.Append(logged(1))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var errs []error
		for _, err := range l.Read(ctx, 0) {
			errs = append(errs, err)
			cancel()
		}
		if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], context.Canceled) {
			t.Errorf("got %v, want an event and then context.Canceled", errs)
		}
	})
	t.Run("while there is more", func(t *testing.T) {
		l := NewLog(10, nil)
		l.Append(logged(1))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		n := 0
		for _, err := range l.Read(ctx, 0) {
			cancel()
			l.Append(logged(Seq(n + 2)))
			last = err
			n++
		}
		if n != 2 || !errors.Is(last, context.Canceled) {
			t.Errorf("%d steps, the last with %v: a busy writer blocks a cancelled reader", n, last)
		}
	})
}

func TestLogReaderStops(t *testing.T) {
	var j journal
	l := NewLog(1, j.Replay)
	for s := Seq(1); s <= 9; s++ {
		j.append(logged(s))
		l.Append(logged(s))
	}
	for _, after := range []Seq{0, 8} { // in the replay, and in the window
		n := 0
		for range l.Read(t.Context(), after) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("after %d: %d events", after, n)
		}
	}
}

func TestLogReplayFails(t *testing.T) {
	boom := errors.New("disk on fire")
	l := NewLog(10, func(context.Context, Seq) iter.Seq2[Event, error] {
		return func(yield func(Event, error) bool) { yield(Event{}, boom) }
	})
	l.Forget(3)
	l.Append(logged(4))
	var errs []error
	for _, err := range l.Read(t.Context(), 0) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], boom) {
		t.Errorf("got %v, want the replayer's error and the end", errs)
	}
}

func BenchmarkLogAppend(b *testing.B) {
	l := NewLog(1024, nil)
	e := word(0, "word ")
	b.ReportAllocs()
	for b.Loop() {
		e.Seq++
		l.Append(e)
	}
}

// BenchmarkLogAnswer streams an answer of 5,000 deltas to two readers.
func BenchmarkLogAnswer(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		l := NewLog(1024, nil)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for e := range l.Read(context.Background(), 0) {
					_ = e
				}
			})
		}
		for s := Seq(1); s <= 5000; s++ {
			l.Append(word(s, "word "))
		}
		l.Close()
		wg.Wait()
	}
}

// TestLogWithoutReplayerKeepsAllButDeltas: a late reader of a session in memory
// misses no event but deltas.
func TestLogWithoutReplayerKeepsAllButDeltas(t *testing.T) {
	l := NewLog(8, nil)
	var want []Seq
	for seq := Seq(1); seq <= 500; seq++ {
		e := Event{V: Version, Seq: seq, Body: MessageDelta{Text: "x"}}
		if seq%10 == 0 {
			e.Body = Warning{Code: "N"}
			want = append(want, seq)
		}
		l.Append(e)
	}
	l.Close()
	var got []Seq
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.IsDelta() {
			got = append(got, e.Seq)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("a late reader got %d events, want all %d: %v", len(got), len(want), got)
	}
}
