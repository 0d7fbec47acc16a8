package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// ErrJournalFull is the error after [MemoryJournal.FailAfter].
var ErrJournalFull = errors.New("no space left in the test's journal")

// MemoryJournal is a [core.Journal] in memory. It keeps records as JSON, so that
// a replay decodes them as from a disk. The zero value is empty and ready to use;
// it is safe for concurrent use.
type MemoryJournal struct {
	mu      sync.Mutex
	records [][]byte
	failAt  int // appends that succeed, when failing
	failing bool
	syncs   int
}

var _ core.Journal = (*MemoryJournal)(nil)

// FailAfter lets the next n appends succeed and all after them fail with
// [ErrJournalFull]. A negative n lets all succeed again.
func (j *MemoryJournal) FailAfter(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failing, j.failAt = n >= 0, len(j.records)+n
}

// Append implements [core.Journal].
func (j *MemoryJournal) Append(_ context.Context, e event.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failing && len(j.records) >= j.failAt {
		return fmt.Errorf("journal: record %d: %w", e.Seq, ErrJournalFull)
	}
	j.records = append(j.records, data)
	return nil
}

// Sync implements [core.Journal].
func (j *MemoryJournal) Sync(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.syncs++
	return nil
}

// Syncs returns how often Sync was called.
func (j *MemoryJournal) Syncs() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.syncs
}

// Truncate drops all but the first n records, as if the process had crashed
// there.
func (j *MemoryJournal) Truncate(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = j.records[:min(n, len(j.records))]
}

// Lines returns the records as JSON.
func (j *MemoryJournal) Lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := make([]string, len(j.records))
	for i, r := range j.records {
		lines[i] = string(r)
	}
	return lines
}

// Replay implements [core.Journal].
func (j *MemoryJournal) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		j.mu.Lock()
		records := j.records[:len(j.records):len(j.records)]
		j.mu.Unlock()
		for _, r := range records {
			if ctx.Err() != nil {
				yield(event.Event{}, ctx.Err())
				return
			}
			var e event.Event
			if err := json.Unmarshal(r, &e); err != nil {
				yield(event.Event{}, fmt.Errorf("journal: %w", err))
				return
			}
			if e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}
