package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

// step is one step of a fake provider: it yields a delta, or fails.
type step struct {
	delta model.Delta
	err   error
}

// fake is a provider that plays one list of steps for each call, and repeats the
// last list.
type fake struct {
	attempts [][]step
	calls    int
}

func (f *fake) Info() model.ProviderInfo { return model.ProviderInfo{Name: "fake", Model: "m"} }

func (f *fake) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		steps := f.attempts[min(f.calls, len(f.attempts)-1)]
		f.calls++
		for _, s := range steps {
			if !yield(s.delta, s.err) || s.err != nil {
				return
			}
		}
	}
}

func text(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaText, Index: i, Text: s}
}

func reasoning(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaReasoning, Index: i, Text: s}
}

func part(i int, p model.Part) model.Delta {
	return model.Delta{Kind: model.DeltaPart, Index: i, Part: p}
}

func start(i int, id, name string) model.Delta {
	return model.Delta{Kind: model.DeltaToolStart, Index: i, ID: id, Name: name}
}

func args(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaToolArgs, Index: i, Text: s}
}

func end(i int) model.Delta { return model.Delta{Kind: model.DeltaToolEnd, Index: i} }

func done(stop model.StopReason) model.Delta {
	return model.Delta{Kind: model.DeltaDone, Stop: stop, ResponseID: "r1", Model: "m-1"}
}

func TestGatherer(t *testing.T) {
	call := func(id, args string) model.ToolCall { return model.ToolCall{ID: id, Name: "t", Args: args} }
	opaque := func(raw string) model.Opaque { return model.Opaque{Provider: "p", Raw: []byte(raw)} }
	tests := []struct {
		name   string
		deltas []model.Delta
		want   model.Parts
		broken bool
	}{
		{
			name:   "nothing but an end",
			deltas: []model.Delta{done(model.StopEnd)},
		},
		{
			name:   "text in pieces",
			deltas: []model.Delta{text(0, "a"), text(0, ""), text(0, "b"), done(model.StopEnd)},
			want:   model.TextParts("ab"),
		},
		{
			name: "interleaved indices keep the order of their first appearance",
			deltas: []model.Delta{
				reasoning(0, "hm"), text(1, "I "), start(3, "b", "t"), start(2, "a", "t"), args(2, `{"x"`), args(3, "{"), text(1, "look"),
				args(2, ":1 }"), args(3, "}"), end(3), end(2), done(model.StopToolCalls),
			},
			want: model.Parts{
				model.Reasoning{Text: "hm"}, model.Text{Text: "I look"}, call("b", "{}"), call("a", `{"x":1 }`),
			},
		},
		{
			name:   "one index for blocks of different kinds",
			deltas: []model.Delta{reasoning(0, "r"), text(0, "t"), start(0, "a", "t"), args(0, "{}"), end(0), done(model.StopToolCalls)},
			want:   model.Parts{model.Reasoning{Text: "r"}, model.Text{Text: "t"}, call("a", "{}")},
		},
		{
			name: "calls that follow each other under one index",
			deltas: []model.Delta{
				start(0, "a", "t"), args(0, "1"), end(0), start(0, "b", "t"), args(0, "2"), end(0), done(model.StopToolCalls),
			},
			want: model.Parts{call("a", "1"), call("b", "2")},
		},
		{
			name:   "signed reasoning replaces the text that was shown",
			deltas: []model.Delta{reasoning(0, "he"), reasoning(0, "y"), part(0, model.Reasoning{Text: "hey", Signature: "s"}), text(1, "t"), done(model.StopEnd)},
			want:   model.Parts{model.Reasoning{Text: "hey", Signature: "s"}, model.Text{Text: "t"}},
		},
		{
			name: "whole parts are never dropped",
			deltas: []model.Delta{
				part(0, opaque("1")), part(0, opaque("2")), part(0, model.Reasoning{Text: "x"}), part(0, model.Reasoning{Text: "y"}), done(model.StopEnd),
			},
			want: model.Parts{opaque("1"), opaque("2"), model.Reasoning{Text: "x"}, model.Reasoning{Text: "y"}},
		},
		{
			name:   "a call without arguments",
			deltas: []model.Delta{start(0, "a", "t"), end(0), done(model.StopToolCalls)},
			want:   model.Parts{call("a", "")},
		},
		{
			name:   "max_tokens in the middle of a call is an end",
			deltas: []model.Delta{start(0, "a", "t"), args(0, `{"pa`), done(model.StopMaxTokens)},
			want:   model.Parts{call("a", `{"pa`)},
		},
		{
			name:   "a content filter in the middle of a call is not",
			deltas: []model.Delta{start(0, "a", "t"), args(0, `{"pa`), done(model.StopContentFilter)},
			want:   model.Parts{call("a", `{"pa`)},
			broken: true,
		},
		{
			name:   "no done",
			deltas: []model.Delta{text(0, "half a sen")},
			want:   model.TextParts("half a sen"),
			broken: true,
		},
		{
			name:   "a call that never ended",
			deltas: []model.Delta{start(0, "a", "t"), args(0, `{"pa`), done(model.StopToolCalls)},
			want:   model.Parts{call("a", `{"pa`)},
			broken: true,
		},
		{
			name:   "no delta at all",
			broken: true,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var g model.Gatherer
			for _, d := range tc.deltas {
				g.Add(d)
			}
			got, err := g.Response()
			if !reflect.DeepEqual(got.Parts, tc.want) {
				t.Errorf("got  %#v\nwant %#v", got.Parts, tc.want)
			}
			var e *model.Error
			switch broken := errors.Is(err, io.ErrUnexpectedEOF); {
			case broken != tc.broken, broken && (!errors.As(err, &e) || e.Code != model.CodeNetwork), !broken && err != nil:
				t.Errorf("error %v, broken off: %t", err, tc.broken)
			}
			if again, _ := g.Response(); !reflect.DeepEqual(again, got) {
				t.Errorf("the second Response differs: %#v", again)
			}
		})
	}
}

func TestGathererEnvelope(t *testing.T) {
	usage := func(in, out int) model.Usage { return model.Usage{Input: in, Output: out} }
	last := done(model.StopEnd)
	var g model.Gatherer
	g.Add(model.Delta{Kind: model.DeltaRetry, Retry: &model.Retry{Attempt: 1}})
	g.Add(model.Delta{Kind: model.DeltaUsage, Usage: usage(10, 1)})
	g.Add(model.Delta{Kind: model.DeltaUsage, Usage: usage(10, 5)})
	g.Add(last)
	got, err := g.Response()
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Response{Usage: usage(10, 5), Stop: model.StopEnd, ID: "r1", Model: "m-1"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	last.Usage = usage(11, 6)
	g.Add(last)
	if got, _ := g.Response(); got.Usage != last.Usage {
		t.Errorf("usage of the end does not count: %+v", got.Usage)
	}
}

func TestComplete(t *testing.T) {
	boom := &model.Error{Code: model.CodeNetwork, Message: "boom"}
	tests := []struct {
		name  string
		steps []step
		text  string
		is    error
	}{
		{"whole", []step{{delta: text(0, "hi")}, {delta: done(model.StopEnd)}}, "hi", nil},
		{"failed", []step{{delta: text(0, "hi")}, {err: boom}}, "", boom},
		{"silent end", []step{{delta: text(0, "hi")}}, "hi", io.ErrUnexpectedEOF},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := model.Complete(t.Context(), &fake{attempts: [][]step{tc.steps}}, &model.Request{})
			if !errors.Is(err, tc.is) {
				t.Fatalf("error %v, want %v", err, tc.is)
			}
			if got != nil && got.Parts.Text() != tc.text {
				t.Errorf("got %q, want %q", got.Parts.Text(), tc.text)
			}
			if got == nil && tc.is != boom {
				t.Error("no response")
			}
		})
	}
}

func TestUsage(t *testing.T) {
	u := model.Usage{Input: 1, CachedInput: 2, CacheWrite: 3, Output: 4, Reasoning: 5}
	if got, want := u.Add(u), (model.Usage{Input: 2, CachedInput: 4, CacheWrite: 6, Output: 8, Reasoning: 10}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := u.Total(); got != 5 {
		t.Errorf("Total %d, want 5", got)
	}
}

// BenchmarkGatherer joins an answer of 5,000 deltas: some text, then two calls
// with interleaved arguments.
func BenchmarkGatherer(b *testing.B) {
	deltas := make([]model.Delta, 0, 5010)
	for range 3000 {
		deltas = append(deltas, text(0, "word "))
	}
	deltas = append(deltas, start(1, "a", "t"), start(2, "b", "t"))
	for i := range 2000 {
		deltas = append(deltas, args(1+i%2, `"word",`))
	}
	deltas = append(deltas, end(1), end(2), done(model.StopToolCalls))
	b.ReportAllocs()
	for b.Loop() {
		var g model.Gatherer
		for _, d := range deltas {
			g.Add(d)
		}
		if _, err := g.Response(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGathererManyBlocks has a block for every delta.
func BenchmarkGathererManyBlocks(b *testing.B) {
	deltas := make([]model.Delta, 5000)
	for i := range deltas {
		deltas[i] = text(i, fmt.Sprint(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		var g model.Gatherer
		for _, d := range deltas {
			g.Add(d)
		}
	}
}

// TestAnswerLimits checks that an answer without end is cut off.
func TestAnswerLimits(t *testing.T) {
	piece := strings.Repeat("x", 1<<20)
	var text model.Gatherer
	var err error
	for n := 0; err == nil && n < 100; n++ {
		err = text.Add(model.Delta{Kind: model.DeltaText, Text: piece})
	}
	if e := model.AsError(err); e == nil || e.Retryable() || !strings.Contains(e.Message, "exceeds the limit of 64 MiB") {
		t.Errorf("text: %v", err)
	}
	var calls model.Gatherer
	n := 0
	for err = nil; err == nil && n < 20_000; n++ {
		err = calls.Add(model.Delta{Kind: model.DeltaToolStart, Index: n, ID: "c", Name: "x"})
	}
	if e := model.AsError(err); e == nil || n != model.MaxCalls+1 || !strings.Contains(e.Message, "10000 tool calls") {
		t.Errorf("%d calls: %v", n, err)
	}
}

// TestCompleteEmpty shows that an empty answer is asked for once more.
func TestCompleteEmpty(t *testing.T) {
	done := model.Delta{Kind: model.DeltaDone, Stop: model.StopEnd, Usage: model.Usage{Output: 1}}
	text := model.Delta{Kind: model.DeltaText, Text: "full"}
	cut := model.Delta{Kind: model.DeltaDone, Stop: model.StopMaxTokens}
	for _, test := range []struct {
		answers  [][]model.Delta
		requests int
		text     string
		fails    bool
	}{
		{[][]model.Delta{{text, done}}, 1, "full", false},
		{[][]model.Delta{{{Kind: model.DeltaReasoning, Text: "hm"}, done}, {text, done}}, 2, "full", false},
		{[][]model.Delta{{done}, {{Kind: model.DeltaText, Text: " \n"}, done}}, 2, "", true},
		{[][]model.Delta{{cut}}, 1, "", false},
	} {
		p := &answers{list: test.answers}
		resp, err := model.Complete(t.Context(), p, &model.Request{})
		if p.n != test.requests || errors.Is(err, model.ErrEmpty) != test.fails || !test.fails && (resp.Parts.Text() != test.text || resp.Stop == model.StopEnd && resp.Usage.Output != p.n) {
			t.Errorf("%d requests: %+v, %v", p.n, resp, err)
		}
	}
}

// answers is a provider that answers with each list of deltas in turn.
type answers struct {
	list [][]model.Delta
	n    int
}

func (*answers) Info() model.ProviderInfo { return model.ProviderInfo{Name: "fake"} }

func (a *answers) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a.n++
		for _, d := range a.list[a.n-1] {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func TestReasoning(t *testing.T) {
	parts := model.Parts{model.Reasoning{Text: "first"}, model.Text{Text: "said"}, model.Reasoning{Signature: "s"}, model.Reasoning{Text: "second"}}
	if got := parts.Reasoning(); got != "first\n\nsecond" {
		t.Errorf("%q", got)
	}
}
