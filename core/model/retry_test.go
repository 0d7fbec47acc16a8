package model_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

func fail(code model.ErrorCode) []step {
	return []step{{err: &model.Error{Code: code, Provider: "fake"}}}
}

func answer() []step { return []step{{delta: text(0, "hi")}, {delta: done(model.StopEnd)}} }

// sleeper records the waits and returns at once.
type sleeper struct{ waits []time.Duration }

func (s *sleeper) Sleep(ctx context.Context, d time.Duration) error {
	s.waits = append(s.waits, d)
	return ctx.Err()
}

// played is what a consumer received of a stream.
type played struct {
	kinds   []model.DeltaKind
	retries []model.Retry
	err     error
}

func play(ctx context.Context, p model.Provider) played {
	var got played
	for d, err := range p.Stream(ctx, &model.Request{}) {
		if err != nil {
			got.err = err
			continue // a delta after an error would show
		}
		got.kinds = append(got.kinds, d.Kind)
		if d.Retry != nil {
			got.retries = append(got.retries, *d.Retry)
		}
	}
	return got
}

func TestWithRetry(t *testing.T) {
	const s = time.Second
	after := func(d time.Duration) []step {
		return []step{{err: &model.Error{Code: model.CodeRateLimited, RetryAfter: d}}}
	}
	tests := []struct {
		name     string
		attempts [][]step
		calls    int
		waits    []time.Duration
		code     model.ErrorCode // empty = the answer arrives
	}{
		{"at once", [][]step{answer()}, 1, nil, ""},
		{"after two failures", [][]step{fail(model.CodeNetwork), fail(model.CodeInvalidResponse), answer()}, 3, []time.Duration{1 * s, 2 * s}, ""},
		{"never", [][]step{fail(model.CodeNetwork)}, 5, []time.Duration{1 * s, 2 * s, 4 * s, 5 * s}, model.CodeNetwork},
		{"not retryable", [][]step{fail(model.CodeAuthentication), answer()}, 1, nil, model.CodeAuthentication},
		{"the second is not retryable", [][]step{fail(model.CodeNetwork), fail(model.CodeInvalidRequest), answer()}, 2, []time.Duration{1 * s}, model.CodeInvalidRequest},
		{"the provider's wish counts, also above the cap", [][]step{after(42 * s), answer()}, 2, []time.Duration{42 * s}, ""},
		{"but not above its bound", [][]step{after(61 * s), answer()}, 1, nil, model.CodeRateLimited},
		{"a time-out, once", [][]step{fail(model.CodeTimeout), fail(model.CodeTimeout), answer()}, 2, []time.Duration{1 * s}, model.CodeTimeout},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var sl sleeper
			inner := &fake{attempts: tc.attempts}
			p := model.WithRetry(inner, model.RetryPolicy{Max: 4, Base: s, Cap: 5 * s, MaxRetryAfter: time.Minute, Sleep: sl.Sleep})
			got := play(t.Context(), p)
			if inner.calls != tc.calls || !slices.Equal(sl.waits, tc.waits) {
				t.Errorf("%d calls, waits %v; want %d, %v", inner.calls, sl.waits, tc.calls, tc.waits)
			}
			if code := codeOf(got.err); code != tc.code {
				t.Errorf("error %v, want code %q", got.err, tc.code)
			}
			if len(got.retries) != len(tc.waits) {
				t.Fatalf("%d retries were announced, want %d", len(got.retries), len(tc.waits))
			}
			for i, r := range got.retries {
				if r.Attempt != i+1 || r.Max != 4 || r.Wait != tc.waits[i] || r.Err == nil {
					t.Errorf("retry %d announced as %+v", i+1, r)
				}
			}
		})
	}
}

func codeOf(err error) model.ErrorCode {
	if err == nil {
		return ""
	}
	return model.AsError(err).Code
}

func TestWithRetryWaits(t *testing.T) {
	tests := []struct {
		name     string
		policy   model.RetryPolicy
		low, top time.Duration // of the last wait
	}{
		{"jitter", model.RetryPolicy{Max: 3, Base: time.Second, Jitter: 0.25}, 3 * time.Second, 5 * time.Second},
		{"base above the cap", model.RetryPolicy{Max: 1, Base: time.Hour, Cap: time.Second}, time.Second, time.Second},
		{"no overflow", model.RetryPolicy{Max: 100, Base: time.Second, Jitter: 0.5}, time.Hour, math.MaxInt64},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var sl sleeper
			tc.policy.Sleep = sl.Sleep
			play(t.Context(), model.WithRetry(&fake{attempts: [][]step{fail(model.CodeNetwork)}}, tc.policy))
			if len(sl.waits) != tc.policy.Max {
				t.Fatalf("%d waits, want %d", len(sl.waits), tc.policy.Max)
			}
			if last := sl.waits[len(sl.waits)-1]; last < tc.low || last > tc.top {
				t.Errorf("last wait %v, want %v to %v", last, tc.low, tc.top)
			}
		})
	}
}

func TestWithRetryCancelledWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inner := &fake{attempts: [][]step{fail(model.CodeRateLimited)}}
	p := model.WithRetry(inner, model.RetryPolicy{Max: 3, Base: time.Hour, Sleep: func(ctx context.Context, _ time.Duration) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}})
	got := play(ctx, p)
	if !errors.Is(got.err, ctx.Err()) || inner.calls != 1 {
		t.Fatalf("error %v after %d calls, want %v after 1", got.err, inner.calls, ctx.Err())
	}
	e := model.AsError(got.err)
	if e.Code != model.CodeRateLimited || e.Retryable() {
		t.Errorf("code %s, retryable %t: want the failed attempt's code and no retry", e.Code, e.Retryable())
	}
}

// The real timer is stopped by the context, too.
func TestWithRetryTimer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := model.WithRetry(&fake{attempts: [][]step{fail(model.CodeNetwork)}}, model.RetryPolicy{Max: 1, Base: time.Hour})
	var last error
	for d, err := range p.Stream(ctx, &model.Request{}) {
		if last = err; d.Kind == model.DeltaRetry {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", last)
	}
	short := model.WithRetry(&fake{attempts: [][]step{fail(model.CodeNetwork), answer()}}, model.RetryPolicy{Max: 1, Base: time.Nanosecond})
	if _, err := model.Complete(t.Context(), short, &model.Request{}); err != nil {
		t.Errorf("after a wait that ends: %v", err)
	}
}

func TestWithRetryOfACancelledRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var sl sleeper
	inner := &fake{attempts: [][]step{fail(model.CodeNetwork)}}
	got := play(ctx, model.WithRetry(inner, model.RetryPolicy{Max: 3, Sleep: sl.Sleep}))
	if !errors.Is(got.err, context.Canceled) || inner.calls != 1 || len(sl.waits) != 0 {
		t.Errorf("error %v, %d calls, waits %v", got.err, inner.calls, sl.waits)
	}
}

func TestWithRetryConsumerStops(t *testing.T) {
	for name, attempts := range map[string][][]step{
		"at the retry": {fail(model.CodeNetwork), answer()},
		"at the text":  {answer()},
	} {
		t.Run(name, func(t *testing.T) {
			var sl sleeper
			inner := &fake{attempts: attempts}
			for range model.WithRetry(inner, model.RetryPolicy{Max: 3, Sleep: sl.Sleep}).Stream(t.Context(), &model.Request{}) {
				break
			}
			if inner.calls != 1 || len(sl.waits) != 0 {
				t.Errorf("%d calls and waits %v after the consumer left", inner.calls, sl.waits)
			}
		})
	}
}

func TestWithRetryOff(t *testing.T) {
	inner := &fake{attempts: [][]step{answer()}}
	if p := model.WithRetry(inner, model.RetryPolicy{}); p != model.Provider(inner) {
		t.Errorf("a policy without retries wraps: %T", p)
	}
	if got := model.WithRetry(inner, model.DefaultRetry).Info(); got != inner.Info() {
		t.Errorf("Info is hidden: %+v", got)
	}
}

// TestWithRetryOfBrokenAnswers checks that what arrived of a broken answer is
// void, and how often one is retried.
func TestWithRetryOfBrokenAnswers(t *testing.T) {
	half := []step{{delta: text(0, "half")}, {err: &model.Error{Code: model.CodeNetwork}}}
	for _, tc := range []struct {
		name     string
		attempts [][]step
		calls    int
		text     string // empty = an error
	}{
		{"once", [][]step{half, answer()}, 2, "hi"},
		{"as often as is allowed", [][]step{half, half, half, half, half, answer()}, 6, "hi"},
		{"too often", [][]step{half}, 6, ""},
		{"between other failures", [][]step{fail(model.CodeNetwork), half, fail(model.CodeNetwork), half, answer()}, 5, "hi"},
		{"not what will fail again", [][]step{{{delta: text(0, "half")}, {err: &model.Error{Code: model.CodeInvalidRequest}}}, answer()}, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sl sleeper
			inner := &fake{attempts: tc.attempts}
			policy := model.RetryPolicy{Max: 1, Broken: 5, Sleep: sl.Sleep}
			got, err := model.Complete(t.Context(), model.WithRetry(inner, policy), &model.Request{})
			if inner.calls != tc.calls || (err == nil) != (tc.text != "") || err == nil && got.Parts.Text() != tc.text {
				t.Errorf("%+v, %v after %d calls", got, err, inner.calls)
			}
		})
	}
}

// TestWithRetrySaysWhenToComeBack checks the error of a wait that is too long.
func TestWithRetrySaysWhenToComeBack(t *testing.T) {
	inner := &fake{attempts: [][]step{{{err: &model.Error{Code: model.CodeRateLimited, Message: "slow down", RetryAfter: 2 * time.Hour}}}}}
	got := play(t.Context(), model.WithRetry(inner, model.DefaultRetry))
	if e := model.AsError(got.err); e == nil || e.RetryAfter != 2*time.Hour || !strings.Contains(e.Message, "slow down; the server asks to wait 2h0m0s, longer than the limit of 5m0s: try again after 2") {
		t.Errorf("error %v", got.err)
	}
}
