package coretest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

// Turn is one answer of a [FakeProvider]. Its parts are streamed in the order
// of the fields.
type Turn struct {
	// Hook is called with the request before the answer. It may block.
	Hook func(req *model.Request)

	Reasoning string
	Text      string
	Pieces    []string     // more text, each a separate delta
	Parts     []model.Part // such as Opaque, each a separate delta
	Calls     []model.ToolCall

	// Block delays the end of the answer until it is closed or receives, or
	// the request is cancelled.
	Block <-chan struct{}

	Usage model.Usage
	Stop  model.StopReason // empty = tool_calls if there are Calls, else end
	Err   error            // ends the stream instead of the answer's end
	// Cut breaks the connection: within the last call's arguments if there are
	// Calls, else after the text.
	Cut bool
}

// Say is a turn that answers text and ends.
func Say(text string) Turn { return Turn{Text: text} }

// CallTools is a turn that calls tools. Calls without an id get one.
func CallTools(calls ...model.ToolCall) Turn { return Turn{Calls: calls} }

// FakeProvider is a [model.Provider] with fixed answers, a turn for each
// request. It is safe for concurrent use.
type FakeProvider struct {
	mu       sync.Mutex
	turns    []Turn
	requests []model.Request
}

var _ model.Provider = (*FakeProvider)(nil)

// Model returns a provider that gives the answers in order, and an error of code
// INVALID_REQUEST when there are no more.
func Model(turns ...Turn) *FakeProvider { return &FakeProvider{turns: turns} }

// Info implements [model.Provider].
func (p *FakeProvider) Info() model.ProviderInfo {
	return model.ProviderInfo{Name: "coretest", Model: "fake-1"}
}

// Requests returns the requests so far, oldest first. What they point to is
// shared with the session.
func (p *FakeProvider) Requests() []model.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Stream implements [model.Provider].
func (p *FakeProvider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		t, n, ok := p.next(req)
		if !ok {
			yield(model.Delta{}, &model.Error{
				Code: model.CodeInvalidRequest, Provider: p.Info().Name,
				Message: fmt.Sprintf("request %d has no turn: the session made more requests than the test has answers for", n),
			})
			return
		}
		if t.Hook != nil {
			t.Hook(req)
		}
		for _, d := range t.deltas(n) {
			if ctx.Err() != nil {
				yield(model.Delta{}, ctx.Err())
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if t.Block != nil {
			select {
			case <-t.Block:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			yield(model.Delta{}, ctx.Err())
			return
		}
		yield(t.end(n))
	}
}

// next records a request and returns its turn; n counts from 1.
func (p *FakeProvider) next(req *model.Request) (t Turn, n int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, *req)
	n = len(p.requests)
	if n > len(p.turns) {
		return Turn{}, n, false
	}
	return p.turns[n-1], n, true
}

// deltas returns all deltas but the last.
func (t Turn) deltas(n int) []model.Delta {
	var out []model.Delta
	index := 0
	add := func(d model.Delta) {
		d.Index = index
		out = append(out, d)
	}
	if t.Reasoning != "" {
		add(model.Delta{Kind: model.DeltaReasoning, Text: t.Reasoning})
		index++
	}
	for _, text := range append([]string{t.Text}, t.Pieces...) {
		if text != "" {
			add(model.Delta{Kind: model.DeltaText, Text: text})
		}
	}
	for _, part := range t.Parts {
		index++
		add(model.Delta{Kind: model.DeltaPart, Part: part})
	}
	for i, c := range t.Calls {
		index++
		if c.ID == "" {
			c.ID = fmt.Sprintf("call-%d-%d", n, i+1)
		}
		add(model.Delta{Kind: model.DeltaToolStart, ID: c.ID, Name: c.Name})
		half := len(c.Args) / 2
		add(model.Delta{Kind: model.DeltaToolArgs, Text: c.Args[:half]})
		if t.Cut && i == len(t.Calls)-1 {
			break
		}
		add(model.Delta{Kind: model.DeltaToolArgs, Text: c.Args[half:]})
		add(model.Delta{Kind: model.DeltaToolEnd})
	}
	if t.Usage != (model.Usage{}) {
		out = append(out, model.Delta{Kind: model.DeltaUsage, Usage: t.Usage})
	}
	return out
}

// end returns the last delta, or the error instead of it.
func (t Turn) end(n int) (model.Delta, error) {
	switch {
	case t.Err != nil:
		return model.Delta{}, t.Err
	case t.Cut:
		return model.Delta{}, &model.Error{Code: model.CodeNetwork, Provider: "coretest", Message: "connection lost", Err: io.ErrUnexpectedEOF}
	}
	stop := t.Stop
	if stop == "" {
		stop = model.StopEnd
		if len(t.Calls) > 0 {
			stop = model.StopToolCalls
		}
	}
	return model.Delta{
		Kind: model.DeltaDone, Stop: stop, Usage: t.Usage, Model: "fake-1", ResponseID: fmt.Sprintf("response-%d", n),
	}, nil
}
