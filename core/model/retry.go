package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// RetryPolicy is the retry rule. The zero value does not retry; [DefaultRetry]
// is the default of the settings.
type RetryPolicy struct {
	Max int // retries of requests that fail before their answer begins
	// Broken is the number of retries of answers that break off, and of requests
	// to a server that has answered before and cannot be reached or sends nonsense.
	Broken        int
	Base          time.Duration // wait before the first retry, doubled for each further one
	Cap           time.Duration // upper bound of the doubled wait, before jitter; 0 = none
	Jitter        float64       // fraction by which a wait may vary, such as 0.25
	MaxRetryAfter time.Duration // no retry if the provider asks to wait longer; 0 = no limit
	// Sleep waits for d or until ctx ends; nil means a timer. Tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// DefaultRetry is 3 retries after 1 s, 2 s and 4 s, each ±25 %, and 5 of broken
// answers; a provider may ask for up to five minutes.
var DefaultRetry = RetryPolicy{
	Max: 3, Broken: 5, Base: time.Second, Cap: 10 * time.Second, Jitter: 0.25, MaxRetryAfter: 5 * time.Minute,
}

// WithRetry returns p with failed attempts repeated by the policy, if their error
// is retryable. Each wait is announced by a DeltaRetry; if the attempt had yielded
// a part of an answer, that says to discard it. A time-out is retried only once.
func WithRetry(p Provider, policy RetryPolicy) Provider {
	if policy.Max <= 0 && policy.Broken <= 0 {
		return p
	}
	if policy.Sleep == nil {
		policy.Sleep = sleep
	}
	return &retrying{Provider: p, policy: policy}
}

type retrying struct {
	Provider
	policy   RetryPolicy
	answered atomic.Bool // the provider has begun an answer before
}

// attempts counts the failed attempts of one request.
type attempts struct{ failed, broken, timeouts int }

// Stream implements [Provider].
func (r *retrying) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var n attempts
		for {
			a := try(ctx, r.Provider, req, yield)
			if a.begun {
				r.answered.Store(true)
			}
			if a.stopped || a.err == nil {
				return
			}
			e := AsError(a.err)
			if cerr := ctx.Err(); cerr != nil && e.Retryable() {
				yield(Delta{}, r.cancelled(cerr, a.err))
				return
			}
			info := r.next(&n, a)
			if info == nil {
				yield(Delta{}, r.tooLong(a.err))
				return
			}
			if !yield(Delta{Kind: DeltaRetry, Retry: info}, nil) {
				return
			}
			if serr := r.policy.Sleep(ctx, info.Wait); serr != nil {
				yield(Delta{}, r.cancelled(serr, a.err))
				return
			}
		}
	}
}

// next returns the retry of a failed attempt, or nil if there is none.
func (r *retrying) next(n *attempts, a attempt) *Retry {
	e := AsError(a.err)
	if !e.Retryable() {
		return nil
	}
	count, limit := &n.failed, r.policy.Max
	lost := e.Status == 0 && (e.Code == CodeNetwork || e.Code == CodeInvalidResponse)
	if a.begun || lost && r.answered.Load() {
		count, limit = &n.broken, r.policy.Broken
	}
	if e.Code == CodeTimeout && e.Status == 0 { // each costs the whole limit
		n.timeouts++
	}
	if *count++; *count > limit || n.timeouts > 1 {
		return nil
	}
	wait, ok := r.wait(e, *count)
	if !ok {
		return nil
	}
	return &Retry{Attempt: *count, Max: limit, Wait: wait, Err: a.err, Discard: a.begun}
}

// tooLong adds to an error that the provider asks to wait for too long, and until
// when.
func (r *retrying) tooLong(err error) error {
	e := AsError(err)
	limit := r.policy.MaxRetryAfter
	if !e.Retryable() || limit <= 0 || e.RetryAfter <= limit {
		return err
	}
	later := *e
	later.Message = fmt.Sprintf("%s; the server asks to wait %s, longer than the limit of %s: try again after %s",
		cmp.Or(e.Message, string(e.Code)), e.RetryAfter.Round(time.Second), limit, time.Now().Add(e.RetryAfter).Format("2006-01-02 15:04:05 MST"))
	return &later
}

// cancelled returns the error of a request that was cancelled, for cause, after
// an attempt had failed. It wraps both.
func (r *retrying) cancelled(cause, failed error) error {
	if errors.Is(failed, cause) {
		return failed
	}
	return &Error{
		Code: AsError(failed).Code, Provider: r.Info().Name,
		Message: fmt.Sprintf("cancelled before a retry (%v); the last attempt failed: %v", cause, failed),
		Err:     errors.Join(cause, failed),
	}
}

// attempt is the result of streaming once.
type attempt struct {
	err     error // nil after a complete answer
	begun   bool  // a part of an answer was yielded that err makes worthless
	stopped bool  // the consumer stopped
}

// try streams once. It yields everything but the error.
func try(ctx context.Context, p Provider, req *Request, yield func(Delta, error) bool) (a attempt) {
	for d, err := range p.Stream(ctx, req) {
		if err != nil {
			a.err = err
			return a
		}
		if d.Kind != DeltaRetry {
			a.begun = true
		} else if d.Retry.Discard {
			a.begun = false
		}
		if !yield(d, nil) {
			a.stopped = true
			return a
		}
	}
	return a
}

// wait returns how long to wait before a retry, counted from 1, and false if that
// is too long.
func (r *retrying) wait(e *Error, n int) (time.Duration, bool) {
	p := r.policy
	if e.RetryAfter > 0 {
		return e.RetryAfter, p.MaxRetryAfter <= 0 || e.RetryAfter <= p.MaxRetryAfter
	}
	limit := time.Duration(math.MaxInt64 / 4) // leaves room for doubling and jitter
	if p.Cap > 0 {
		limit = min(limit, p.Cap)
	}
	d := min(p.Base, limit)
	for i := 1; i < n && d < limit; i++ {
		d = min(2*d, limit)
	}
	return time.Duration(float64(d) * (1 + p.Jitter*(2*rand.Float64()-1))), true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
