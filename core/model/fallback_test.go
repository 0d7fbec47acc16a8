package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"
)

// fixed answers each request with its errors in turn, then with its name.
type fixed struct {
	name   string
	errs   []error
	begins bool // it yields a text before it fails
	asked  []string
}

func (f *fixed) Info() ProviderInfo { return ProviderInfo{Name: f.name, Model: f.name + "-model"} }

func (f *fixed) Stream(_ context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		f.asked = append(f.asked, req.Model)
		if len(f.errs) > 0 {
			err := f.errs[0]
			f.errs = f.errs[1:]
			if f.begins && !yield(Delta{Kind: DeltaText, Text: "half"}, nil) {
				return
			}
			yield(Delta{}, err)
			return
		}
		if yield(Delta{Kind: DeltaText, Text: f.name}, nil) {
			yield(Delta{Kind: DeltaDone, Stop: StopEnd}, nil)
		}
	}
}

func answerOf(ctx context.Context, p Provider) string {
	var b strings.Builder
	for d, err := range p.Stream(ctx, &Request{Model: "named"}) {
		switch {
		case err != nil:
			fmt.Fprintf(&b, "error %v", AsError(err).Code)
		case d.Kind == DeltaRetry:
			fmt.Fprintf(&b, "[%v] ", d.Retry.Err)
		default:
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

func TestFallback(t *testing.T) {
	fails := func(code ErrorCode) error { return &Error{Code: code, Message: "no"} }
	for _, test := range []struct {
		name string
		a, b *fixed
		want string
	}{
		{"all is well", &fixed{}, &fixed{}, "a"},
		{"overload", &fixed{errs: []error{fails(CodeNetwork)}}, &fixed{}, "[b/b-model takes over from a: no] b"},
		{"no money", &fixed{errs: []error{&Error{Code: CodeRateLimited, Message: "pay", Permanent: true}}}, &fixed{}, "[b/b-model takes over from a: pay] b"},
		{"wrong key", &fixed{errs: []error{fails(CodeAuthentication)}}, &fixed{}, "error AUTHENTICATION_ERROR"},
		{"too long", &fixed{errs: []error{fails(CodeContextLength)}}, &fixed{}, "error CONTEXT_LENGTH_EXCEEDED"},
		{"cancelled", &fixed{errs: []error{&Error{Code: CodeNetwork, Err: context.Canceled}}}, &fixed{}, "error NETWORK_ERROR"},
		{"an answer has begun", &fixed{errs: []error{fails(CodeNetwork)}, begins: true}, &fixed{}, "half[b/b-model takes over from a: no] b"},
		{"nonsense", &fixed{errs: []error{fails(CodeInvalidResponse)}}, &fixed{}, "[b/b-model takes over from a: no] b"},
		{"both fail", &fixed{errs: []error{fails(CodeNetwork)}}, &fixed{errs: []error{fails(CodeTimeout)}}, "[b/b-model takes over from a: no] error TIMEOUT"},
	} {
		test.a.name, test.b.name = "a", "b"
		if got := answerOf(t.Context(), WithFallback(test.a, test.b)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if len(test.b.asked) > 0 && test.b.asked[0] != "" {
			t.Errorf("%s: the other was asked for the first one's model", test.name)
		}
	}
	p := &fixed{name: "a"}
	if WithFallback(p) != Provider(p) {
		t.Error("without others there is nothing to fall back on")
	}
}

// TestFallbackAfterRetries checks that retries come first, and that both are
// announced.
func TestFallbackAfterRetries(t *testing.T) {
	slow := &Error{Code: CodeNetwork, Message: "busy"}
	a := &fixed{name: "a", errs: []error{slow, slow, slow}}
	policy := RetryPolicy{Max: 1, Sleep: func(context.Context, time.Duration) error { return nil }}
	got := answerOf(t.Context(), WithFallback(WithRetry(a, policy), &fixed{name: "b"}))
	if got != "[busy] [b/b-model takes over from a: busy] b" || len(a.asked) != 2 {
		t.Errorf("%q after %d attempts", got, len(a.asked))
	}
}

// TestFallbackWaits checks that a provider is skipped for as long as it asked.
func TestFallbackWaits(t *testing.T) {
	now := time.Unix(1000, 0)
	a := &fixed{name: "a", errs: []error{&Error{Code: CodeRateLimited, Message: "slow down", RetryAfter: time.Minute}}}
	p := WithFallback(a, &fixed{name: "b"})
	p.(*fallback).now = func() time.Time { return now }
	for i, want := range []string{"[b/b-model takes over from a: slow down] b", "[b/b-model takes over from a: skipped until its retry-after time has passed] b", "a"} {
		if got := answerOf(t.Context(), p); got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
		now = now.Add(40 * time.Second)
	}
	if p.Info().Name != "a" {
		t.Errorf("info %+v", p.Info())
	}
}

func TestFallbackKeepsAllErrors(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	p := WithFallback(&fixed{name: "a", errs: []error{&Error{Code: CodeNetwork, Err: one}}}, &fixed{name: "b", errs: []error{&Error{Code: CodeNetwork, Err: two}}})
	_, err := Complete(t.Context(), p, &Request{})
	if !errors.Is(err, one) || !errors.Is(err, two) {
		t.Errorf("error %v", err)
	}
}
