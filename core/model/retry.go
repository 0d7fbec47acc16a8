package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// RetryPolicy is the retry rule. The zero value does not retry; [DefaultRetry]
// is the default of the settings.
type RetryPolicy struct {
	Max           int           // retries after the first attempt
	Base          time.Duration // wait before the first retry, doubled for each further one
	Cap           time.Duration // upper bound of the doubled wait, before jitter; 0 = none
	Jitter        float64       // fraction by which a wait may vary, such as 0.25
	MaxRetryAfter time.Duration // no retry if the provider asks to wait longer; 0 = no limit
	// Sleep waits for d or until ctx ends; nil means a timer. Tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// DefaultRetry is 3 retries after 1 s, 2 s and 4 s, each ±25 %; a provider may
// ask for up to a minute.
var DefaultRetry = RetryPolicy{
	Max: 3, Base: time.Second, Cap: 10 * time.Second, Jitter: 0.25, MaxRetryAfter: time.Minute,
}

// WithRetry returns p with failed attempts repeated by the policy. An attempt
// is repeated only if its error is retryable and it has yielded nothing yet;
// each wait is announced by a DeltaRetry.
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
			err, stopped := try(ctx, r.Provider, req, yield, (*Error).Retryable)
			if err == nil || stopped {
				return
			}
			if cerr := ctx.Err(); cerr != nil {
				yield(Delta{}, r.cancelled(cerr, err))
				return
			}
			wait, ok := r.wait(AsError(err), attempt)
			if !ok {
				yield(Delta{}, err)
				return
			}
			info := &Retry{Attempt: attempt, Max: r.policy.Max, Wait: wait, Err: err}
			if !yield(Delta{Kind: DeltaRetry, Retry: info}, nil) {
				return
			}
			if serr := r.policy.Sleep(ctx, wait); serr != nil {
				yield(Delta{}, r.cancelled(serr, err))
				return
			}
		}
	}
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

// try streams once. It returns the error if nothing of an answer was yielded
// and again allows another attempt; stopped means that the sequence has ended.
func try(ctx context.Context, p Provider, req *Request, yield func(Delta, error) bool, again func(*Error) bool) (failed error, stopped bool) {
	begun := false
	for d, err := range p.Stream(ctx, req) {
		if err != nil {
			if !begun && again(AsError(err)) {
				return err, false
			}
			yield(Delta{}, err)
			return nil, true
		}
		begun = begun || d.Kind != DeltaRetry
		if !yield(d, nil) {
			return nil, true
		}
	}
	return nil, true
}

// wait returns how long to wait after the failed attempt, and whether to retry.
func (r *retrying) wait(e *Error, attempt int) (time.Duration, bool) {
	p := r.policy
	if attempt > p.Max {
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, p.MaxRetryAfter <= 0 || e.RetryAfter <= p.MaxRetryAfter
	}
	limit := time.Duration(math.MaxInt64 / 4) // leaves room for doubling and jitter
	if p.Cap > 0 {
		limit = min(limit, p.Cap)
	}
	d := min(p.Base, limit)
	for i := 1; i < attempt && d < limit; i++ {
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
