// Package timeout provides a timeout that can be paused, for work that waits for
// the user.
package timeout

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrExpired is the cause of a context that timed out.
var ErrExpired = errors.New("timed out")

// Timer ends a context after some time, not counting pauses. It is safe for
// concurrent use.
type Timer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer // nil without a timeout
	whole  time.Duration
	left   time.Duration
	since  time.Time // the last start
	pauses int       // calls of Pause without Resume
	paused time.Duration
	halt   time.Time // the beginning of the current pause
}

// New starts a timer; with d <= 0 it never expires. The caller calls Stop.
func New(parent context.Context, d time.Duration) *Timer {
	t := &Timer{whole: d, left: d, since: time.Now()}
	t.ctx, t.cancel = context.WithCancelCause(parent)
	if d > 0 {
		t.timer = time.AfterFunc(d, func() { t.cancel(ErrExpired) })
	}
	return t
}

// Context is done when the timer expires, with the cause ErrExpired, when the
// parent is done, or after Stop.
func (t *Timer) Context() context.Context { return t.ctx }

// Pause stops the clock until Resume is called as many times.
func (t *Timer) Pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses++; t.pauses > 1 {
		return
	}
	t.halt = time.Now()
	if t.timer != nil {
		t.timer.Stop()
		t.left -= t.halt.Sub(t.since)
	}
}

// Resume undoes one Pause.
func (t *Timer) Resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses--; t.pauses > 0 {
		return
	}
	t.since = time.Now()
	t.paused += t.since.Sub(t.halt)
	if t.timer != nil {
		t.timer.Reset(max(t.left, 0))
	}
}

// Paused returns the time spent in pauses that are over.
func (t *Timer) Paused() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}

// Expired reports whether the timer ended the context.
func (t *Timer) Expired() bool { return errors.Is(context.Cause(t.ctx), ErrExpired) }

// Stop ends the context and frees the timer.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.cancel(nil)
}

// Restart sets the clock back to its whole time.
func (t *Timer) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil || t.ctx.Err() != nil {
		return
	}
	t.left = t.whole
	if t.pauses == 0 {
		t.since = time.Now()
		t.timer.Reset(t.left)
	}
}

// Await runs f and returns its result. When ctx is done, f gets some more time;
// then ok is false and f continues alone.
func Await[T any](ctx context.Context, grace time.Duration, f func() T) (result T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case result = <-done:
		return result, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case result = <-done:
		return result, true
	case <-timer.C:
		return result, false
	}
}
