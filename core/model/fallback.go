package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// WithFallback returns a provider that hands a request on when the first one
// fails: to each of the others in order. A request is handed on when its failure
// may be different elsewhere, a retryable error or a rate limit, and nothing of
// an answer was yielded yet; before that, a DeltaRetry says so. Retries belong
// inside: WithFallback(WithRetry(a, …), WithRetry(b, …)).
//
// The next request begins with the first provider again, unless that asked for a
// longer wait which is not over. Requests that are handed on name no model: each
// provider uses its own.
func WithFallback(first Provider, others ...Provider) Provider {
	if len(others) == 0 {
		return first
	}
	return &falling{Provider: first, all: append([]Provider{first}, others...), rest: make([]time.Time, 1+len(others)), now: time.Now}
}

type falling struct {
	Provider
	all []Provider
	now func() time.Time

	mu   sync.Mutex
	rest []time.Time // until when each provider is left alone
}

// Stream implements [Provider].
func (f *falling) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var failed []error
		for i, p := range f.all {
			last := i == len(f.all)-1
			err, stopped := error(errResting), false
			if last || !f.resting(i) {
				err, stopped = try(ctx, p, f.request(i, req), yield, func(e *Error) bool { return handOn(e) || last })
				if err == nil || stopped {
					return
				}
				f.leave(i, AsError(err))
				failed = append(failed, err)
			}
			if last || ctx.Err() != nil {
				yield(Delta{}, f.giveUp(failed))
				return
			}
			if !yield(Delta{Kind: DeltaRetry, Retry: f.handed(i, err)}, nil) {
				return
			}
		}
	}
}

// errResting is why a provider that asked for a wait is passed over.
var errResting = &Error{Code: CodeRateLimited, Message: "the wait that it asked for is not over"}

// handed says that the provider after i takes over.
func (f *falling) handed(i int, err error) *Retry {
	next := f.all[i+1].Info()
	return &Retry{Attempt: i + 1, Err: &Error{
		Code: AsError(err).Code, Err: err,
		Message: fmt.Sprintf("%s/%s takes over from %s: %v", next.Name, next.Model, f.all[i].Info().Name, err),
	}}
}

// request returns the request for provider i. Only the first knows its model.
func (f *falling) request(i int, req *Request) *Request {
	if i == 0 {
		return req
	}
	own := *req
	own.Model = ""
	return &own
}

func (f *falling) resting(i int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now().Before(f.rest[i])
}

// leave notes how long a provider asked to be left alone.
func (f *falling) leave(i int, e *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.RetryAfter > 0 {
		f.rest[i] = f.now().Add(e.RetryAfter)
	}
}

// handOn reports whether another provider may answer what this one did not.
func handOn(e *Error) bool {
	if errors.Is(e.Err, context.Canceled) {
		return false
	}
	switch e.Code {
	case CodeRateLimited, CodeNetwork, CodeTimeout:
		return true
	}
	return false
}

// giveUp returns the last error, and all of them in its chain.
func (f *falling) giveUp(failed []error) error {
	last := failed[len(failed)-1]
	if len(failed) == 1 {
		return last
	}
	e := *AsError(last)
	e.Err = errors.Join(failed...)
	return &e
}
