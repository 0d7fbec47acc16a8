// Package timeout has a time-out that can stand still, for work that waits for
// a person in between.
package timeout

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrExpired is the cause of a context whose time is up.
var ErrExpired = errors.New("the time is up")

// Timer ends a context after some time, in which pauses do not count. It is
// safe for concurrent use.
type Timer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer // nil when there is no time-out
	whole  time.Duration
	left   time.Duration
	since  time.Time // of the last start
	pauses int       // that are open
}

// New starts a timer; d of 0 or less never ends. The caller calls Stop.
func New(parent context.Context, d time.Duration) *Timer {
	t := &Timer{whole: d, left: d, since: time.Now()}
	t.ctx, t.cancel = context.WithCancelCause(parent)
	if d > 0 {
		t.timer = time.AfterFunc(d, func() { t.cancel(ErrExpired) })
	}
	return t
}

// Context ends when the time is up, with the cause ErrExpired, when the parent
// ends, or after Stop.
func (t *Timer) Context() context.Context { return t.ctx }

// Pause stops the clock until as many calls of Resume.
func (t *Timer) Pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses++; t.pauses == 1 && t.timer != nil {
		t.timer.Stop()
		t.left -= time.Since(t.since)
	}
}

// Resume lets the clock go on.
func (t *Timer) Resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses--; t.pauses == 0 && t.timer != nil {
		t.since = time.Now()
		t.timer.Reset(max(t.left, 0))
	}
}

// Expired reports whether the time was up before anything else ended the
// context.
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

// Restart gives the clock its whole time again.
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
