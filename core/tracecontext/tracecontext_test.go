package tracecontext_test

import (
	"context"
	"testing"

	"github.com/seed-009c0928/agent/core/tracecontext"
)

func TestChild(t *testing.T) {
	root := tracecontext.Span{}.Child("s1", 2)
	if again := (tracecontext.Span{}).Child("s1", 2); again != root {
		t.Errorf("%v, then %v", root, again)
	}
	tool := root.Child("s1", 9)
	if tool.Trace != root.Trace || tool.ID == root.ID {
		t.Errorf("%v is no child of %v", tool, root)
	}
	for _, other := range []tracecontext.Span{{}, {Trace: root.Trace}} {
		if other.Child("s1", 9).ID != tool.ID || other.Child("s2", 9).ID == tool.ID {
			t.Errorf("the ID does not follow from session and event: %v", other.Child("s1", 9))
		}
	}
}

func TestHeader(t *testing.T) {
	s := tracecontext.Span{}.Child("s1", 2)
	ctx := tracecontext.With(context.Background(), s)
	if h := tracecontext.Header(ctx); h != "" {
		t.Errorf("handed on without Propagate: %s", h)
	}
	for _, sampled := range []bool{true, false} {
		h := tracecontext.Header(tracecontext.Propagate(ctx, func(string) bool { return sampled }))
		got, flag, ok := tracecontext.Parse(h)
		if got != s || flag != sampled || !ok {
			t.Errorf("%s: %v %v %v", h, got, flag, ok)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, h := range []string{
		"", "00", "00-1-2-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1g",
	} {
		if s, _, ok := tracecontext.Parse(h); ok {
			t.Errorf("%q is read as %v", h, s)
		}
	}
	if _, sampled, ok := tracecontext.Parse("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later"); !ok || !sampled {
		t.Error("a later version is refused")
	}
}
