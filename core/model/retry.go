package model

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// RetryPolicy is the one retry rule. The zero value retries nothing;
// [DefaultRetry] is what the settings default to.
type RetryPolicy struct {
	Max           int           // retries after the first attempt
	Base          time.Duration // wait before the first retry, doubled for each next one
	Cap           time.Duration // upper bound of the doubled wait
	Jitter        float64       // fraction by which a wait may differ, such as 0.25
	MaxRetryAfter time.Duration // a provider that asks for a longer wait is not retried
	// Sleep waits for d or until ctx ends; nil means a timer. Tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// DefaultRetry is 3 retries after 1 s, 2 s and 4 s, each ±25 %; a provider may
// ask for up to a minute.
var DefaultRetry = RetryPolicy{
	Max: 3, Base: time.Second, Cap: 10 * time.Second, Jitter: 0.25, MaxRetryAfter: time.Minute,
}

// WithRetry returns p with failed attempts repeated by the policy. An attempt
// is repeated only when its error is retryable and it has yielded nothing yet;
// before each wait a DeltaRetry says so.
func WithRetry(p Provider, policy RetryPolicy) Provider {
	if policy.Max <= 0 {
		return p
	}
	if policy.Sleep == nil {
		policy.Sleep = sleep
	}
	return &retrying{p, policy}
}

type retrying struct {
	Provider
	policy RetryPolicy
}

// Stream implements [Provider].
func (r *retrying) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for attempt := 1; ; attempt++ {
			err, stopped := r.attempt(ctx, req, yield)
			if err == nil || stopped {
				return
			}
			wait, ok := r.wait(AsError(err), attempt)
			if !ok || ctx.Err() != nil {
				yield(Delta{}, err)
				return
			}
			info := &Retry{Attempt: attempt, Max: r.policy.Max, Wait: wait, Err: err}
			if !yield(Delta{Kind: DeltaRetry, Retry: info}, nil) {
				return
			}
			if serr := r.policy.Sleep(ctx, wait); serr != nil {
				yield(Delta{}, &Error{Code: AsError(err).Code, Provider: r.Info().Name, Message: "cancelled while waiting to retry", Err: serr})
				return
			}
		}
	}
}

// attempt streams once. It returns the error of an attempt that yielded
// nothing and so may be repeated; stopped means that the sequence is over.
func (r *retrying) attempt(ctx context.Context, req *Request, yield func(Delta, error) bool) (failed error, stopped bool) {
	begun := false
	for d, err := range r.Provider.Stream(ctx, req) {
		if err != nil {
			if !begun && AsError(err).Retryable() {
				return err, false
			}
			yield(Delta{}, err)
			return nil, true
		}
		begun = true
		if !yield(d, nil) {
			return nil, true
		}
	}
	return nil, true
}

// wait says how long to wait after the failed attempt, and whether to try again.
func (r *retrying) wait(e *Error, attempt int) (time.Duration, bool) {
	p := r.policy
	if attempt > p.Max {
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, p.MaxRetryAfter <= 0 || e.RetryAfter <= p.MaxRetryAfter
	}
	d := p.Base
	for i := 1; i < attempt && (p.Cap <= 0 || d < p.Cap); i++ {
		d *= 2
	}
	if p.Cap > 0 {
		d = min(d, p.Cap)
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
