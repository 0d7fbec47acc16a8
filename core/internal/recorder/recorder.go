// Package recorder numbers the events of a session, writes them to its journal,
// and then shows them to readers. What a journal refuses is kept and tried again,
// in order, so that nothing is missing between two records.
package recorder

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-009c0928/agent/core/event"
)

// Journal is the part of core.Journal that is written.
type Journal interface {
	Append(ctx context.Context, e event.Event) error
	Sync(ctx context.Context) error
}

// ErrFenced is the error of a journal that another process writes now.
var ErrFenced = errors.New("another process has taken over the session")

// Recorder records the events of one session. It is safe for concurrent use.
type Recorder struct {
	log      *event.Log
	optional bool

	mu      sync.Mutex
	journal Journal // nil if there is none, or after a failure of an optional one
	seq     event.Seq
	pending []event.Event // refused by the journal
	stop    func(error)
	sealed  bool
}

// New returns a recorder. The journal may be nil. An optional journal is not used
// again after its first failure; any other stops the work, see [Recorder.OnError].
func New(log *event.Log, journal Journal, optional bool) *Recorder {
	return &Recorder{log: log, journal: journal, optional: optional}
}

// Skip says that the events up to seq are recorded.
func (r *Recorder) Skip(seq event.Seq) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq = seq
	r.log.Forget(seq)
}

// Last returns the number of the last event.
func (r *Recorder) Last() event.Seq {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// OnError sets what ends the current work when the journal fails.
func (r *Recorder) OnError(stop func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = stop
}

// Add numbers an event, records what is to be recorded of it, and shows it. It returns
// the number. The error is that of an optional journal that is given up; the one of any
// other goes to the function of OnError.
func (r *Recorder) Add(ctx context.Context, e event.Event) (event.Seq, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return r.seq, nil
	}
	r.seq++
	e.Seq = r.seq
	var err error
	if r.journal != nil && !e.IsDelta() {
		logged := e
		logged.Body, logged.Record = e.Recorded(), nil
		r.pending = append(r.pending, logged)
		err = r.flush(ctx)
	}
	r.log.Append(e)
	switch {
	case err == nil:
	case r.optional && !errors.Is(err, ErrFenced):
		r.journal, r.pending = nil, nil
		return e.Seq, err
	case r.stop != nil:
		r.stop(err)
	}
	return e.Seq, nil
}

// Flush records what the journal refused before.
func (r *Recorder) Flush(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flush(ctx)
}

// Seal is Flush after which nothing is recorded or shown any more.
func (r *Recorder) Seal(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = true
	return r.flush(ctx)
}

func (r *Recorder) flush(ctx context.Context) error {
	for len(r.pending) > 0 {
		if err := r.journal.Append(context.WithoutCancel(ctx), r.pending[0]); err != nil {
			return err
		}
		r.pending = r.pending[1:]
	}
	r.pending = nil
	return nil
}

// Sync syncs the journal.
func (r *Recorder) Sync(ctx context.Context) error {
	r.mu.Lock()
	j := r.journal
	r.mu.Unlock()
	if j == nil {
		return nil
	}
	return j.Sync(ctx)
}
