package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// WithFallback returns a provider that tries the others, in order, if first
// fails. It falls back after network errors, time-outs, rate limits and malformed
// answers, and announces it by a DeltaRetry that names the next provider. Retries
// belong inside: WithFallback(WithRetry(a, …), WithRetry(b, …)).
//
// Each request begins with the first provider again, unless the wait that it
// asked for is not over. Fallbacks get requests without a model: each uses its
// own.
func WithFallback(first Provider, others ...Provider) Provider {
	if len(others) == 0 {
		return first
	}
	return &fallback{Provider: first, all: append([]Provider{first}, others...), waits: make([]time.Time, 1+len(others)), now: time.Now}
}

type fallback struct {
	Provider
	all []Provider
	now func() time.Time

	mu    sync.Mutex
	waits []time.Time // until when each provider is skipped
}

// Stream implements [Provider].
func (f *fallback) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var failed []error
		for i, p := range f.all {
			last := i == len(f.all)-1
			a := attempt{err: errWaiting}
			if last || !f.waiting(i) {
				a = try(ctx, p, f.request(i, req), yield)
				if a.err == nil || a.stopped {
					return
				}
				f.noteWait(i, AsError(a.err))
				failed = append(failed, a.err)
			}
			if last || ctx.Err() != nil || !mayFallBack(AsError(a.err)) {
				yield(Delta{}, f.giveUp(failed))
				return
			}
			if !yield(Delta{Kind: DeltaRetry, Retry: f.takeover(i, a)}, nil) {
				return
			}
		}
	}
}

// errWaiting is the error of a provider that is skipped.
var errWaiting = &Error{Code: CodeRateLimited, Message: "skipped until its retry-after time has passed"}

// takeover announces that the provider after i takes over.
func (f *fallback) takeover(i int, a attempt) *Retry {
	next := f.all[i+1].Info()
	return &Retry{Attempt: i + 1, Next: &next, Discard: a.begun, Err: &Error{
		Code: AsError(a.err).Code, Err: a.err,
		Message: fmt.Sprintf("%s/%s takes over from %s: %v", next.Name, next.Model, f.all[i].Info().Name, a.err),
	}}
}

// request returns the request for provider i. Its model is one of the first.
func (f *fallback) request(i int, req *Request) *Request {
	if i == 0 {
		return req
	}
	own := *req
	own.Model = ""
	return &own
}

func (f *fallback) waiting(i int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now().Before(f.waits[i])
}

// noteWait notes how long provider i asks to wait.
func (f *fallback) noteWait(i int, e *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.RetryAfter > 0 {
		f.waits[i] = f.now().Add(e.RetryAfter)
	}
}

// mayFallBack reports whether another provider may succeed after the error.
func mayFallBack(e *Error) bool {
	if errors.Is(e.Err, context.Canceled) {
		return false
	}
	switch e.Code {
	case CodeRateLimited, CodeNetwork, CodeTimeout, CodeInvalidResponse:
		return true
	}
	return false
}

// giveUp returns the last error, which wraps all of them.
func (f *fallback) giveUp(failed []error) error {
	last := failed[len(failed)-1]
	if len(failed) == 1 {
		return last
	}
	e := *AsError(last)
	e.Err = errors.Join(failed...)
	return &e
}
