package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/model/internal/longtext"
)

// Provider reaches a language model.
//
// Stream sends req and yields the answer's deltas as they arrive. Its contract:
//   - The sequence always ends with a DeltaDone or an error: a stream that
//     breaks off yields an *[Error], and a cancelled one an error for which
//     errors.Is(err, ctx.Err()) is true.
//   - Nothing is yielded after an error or a DeltaDone.
//   - Tool-call arguments arrive byte for byte as the model wrote them. A call
//     is DeltaToolStart, any number of DeltaToolArgs, DeltaToolEnd; several
//     calls may be interleaved and are told apart by Index.
//   - When the consumer stops early, the connection is closed and no goroutine
//     is left before Stream returns.
//   - Nothing is retried: [WithRetry] does that.
//
// Both methods are safe for concurrent use. Neither changes req.
type Provider interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
	Info() ProviderInfo
}

// ProviderInfo describes a provider. It never contains a secret.
type ProviderInfo struct {
	Name     string // as in the settings: "openai", "local" …
	Model    string // for requests that name none
	Endpoint string // base URL without user info, query or fragment; may be empty
	Timeouts Timeouts
}

// Timeouts are the time limits of one attempt; 0 is none or unknown.
type Timeouts struct {
	FirstByte time.Duration // to the beginning of the answer
	Idle      time.Duration // without data within the answer
	Total     time.Duration
}

// DeltaKind is the kind of a [Delta].
type DeltaKind uint8

// The delta kinds, with the fields of [Delta] that each uses.
const (
	DeltaText      DeltaKind = iota + 1 // Text
	DeltaReasoning                      // Text: reasoning that can be shown
	DeltaPart                           // Part: a complete part, such as Opaque or a signed Reasoning that replaces the reasoning text of the same Index
	DeltaToolStart                      // Index, ID, Name
	DeltaToolArgs                       // Index, Text
	DeltaToolEnd                        // Index
	DeltaUsage                          // Usage so far; the last one counts
	DeltaRetry                          // Retry: the attempt failed and is repeated
	DeltaDone                           // Stop, Usage, ResponseID, Model
)

// Delta is one step of a streamed response. It is a flat struct because an
// answer has thousands of them.
type Delta struct {
	Kind       DeltaKind
	Index      int // which block of the response, in the order of first appearance
	Text       string
	ID, Name   string
	Part       Part
	Usage      Usage
	Stop       StopReason
	ResponseID string
	Model      string // the model that answered, if the provider reports it
	Retry      *Retry
}

// Retry describes a failed attempt that is about to be repeated.
type Retry struct {
	Attempt int // the failed attempt, from 1
	Max     int // retries allowed; 0 if the next provider takes over
	Wait    time.Duration
	Err     error
	Discard bool          // what was yielded of the answer is void
	Next    *ProviderInfo // the provider that takes over; nil if the same tries again
}

// Response is a complete answer.
type Response struct {
	Parts Parts // Text, Reasoning, ToolCall, Opaque … in order
	Usage Usage
	Stop  StopReason
	ID    string
	Model string        // as the service reports it
	By    *ProviderInfo // the fallback that answered; nil if it was the first provider
}

// The limits of an answer. A longer one is an error.
const (
	MaxText  = 64 << 20 // bytes of text, reasoning and arguments
	MaxCalls = 10_000
)

// ErrEmpty is wrapped by the error of an empty answer.
var ErrEmpty = errors.New("the answer is empty")

// Empty reports whether a complete answer has neither text nor tool calls. One
// that was cut off or refused is not empty.
func (r *Response) Empty() bool {
	switch r.Stop {
	case StopMaxTokens, StopRefusal, StopContentFilter:
		return false
	}
	return len(r.Parts.ToolCalls()) == 0 && strings.TrimSpace(r.Parts.Text()) == ""
}

// Complete runs Stream to its end. An empty answer is asked for once more; the
// error of a second one wraps [ErrEmpty]. The usage is that of both.
func Complete(ctx context.Context, p Provider, req *Request) (*Response, error) {
	resp, err := complete(ctx, p, req)
	if err != nil || !resp.Empty() {
		return resp, err
	}
	spent := resp.Usage
	if resp, err = complete(ctx, p, req); err != nil {
		return nil, err
	}
	if resp.Empty() {
		return nil, &Error{Code: CodeInvalidResponse, Provider: p.Info().Name, Message: ErrEmpty.Error(), Err: ErrEmpty}
	}
	resp.Usage = resp.Usage.Add(spent)
	return resp, nil
}

func complete(ctx context.Context, p Provider, req *Request) (*Response, error) {
	var g Gatherer
	for d, err := range p.Stream(ctx, req) {
		if err != nil {
			return nil, err
		}
		if err := g.Add(d); err != nil {
			return nil, err
		}
	}
	return g.Response()
}

// Gatherer joins deltas into a Response. The zero value is ready to use; it is
// not safe for concurrent use.
type Gatherer struct {
	blocks []*block
	usage  Usage
	done   bool
	last   Delta
	by     *ProviderInfo
	text   int // bytes so far
	calls  int
}

type block struct {
	index int
	kind  DeltaKind
	text  longtext.Text
	call  ToolCall
	part  Part
	ended bool
}

// Add adds the next delta. The error is that of an answer beyond [MaxText] or
// [MaxCalls].
func (g *Gatherer) Add(d Delta) error {
	g.text += len(d.Text)
	if g.text > MaxText {
		return tooLarge(fmt.Sprintf("%d MiB", MaxText>>20))
	}
	switch d.Kind {
	case DeltaText, DeltaReasoning:
		g.block(d.Index, d.Kind).text.Add(d.Text)
	case DeltaPart:
		g.addPart(d.Index, d.Part)
	case DeltaToolStart:
		if g.calls++; g.calls > MaxCalls {
			return tooLarge(fmt.Sprintf("%d tool calls", MaxCalls))
		}
		// Always a new block: some providers give all calls the same index.
		g.begin(d.Index, DeltaToolStart).call = ToolCall{ID: d.ID, Name: d.Name}
	case DeltaToolArgs:
		g.block(d.Index, DeltaToolStart).text.Add(d.Text)
	case DeltaToolEnd:
		g.block(d.Index, DeltaToolStart).ended = true
	case DeltaUsage:
		g.usage = d.Usage
	case DeltaRetry:
		if d.Retry.Discard {
			*g = Gatherer{by: g.by}
		}
		if d.Retry.Next != nil {
			g.by = d.Retry.Next
		}
	case DeltaDone:
		g.done, g.last = true, d
		if d.Usage != (Usage{}) {
			g.usage = d.Usage
		}
	}
	return nil
}

func tooLarge(limit string) error {
	return &Error{Code: CodeInvalidResponse, Permanent: true, Message: "the answer was cut off: it exceeds the limit of " + limit}
}

// block returns the latest block of that index and kind, or a new one: a
// provider may reuse an index for blocks of different kinds.
func (g *Gatherer) block(index int, kind DeltaKind) *block {
	for i := len(g.blocks) - 1; i >= 0; i-- {
		if b := g.blocks[i]; b.index == index && b.kind == kind {
			return b
		}
	}
	return g.begin(index, kind)
}

func (g *Gatherer) begin(index int, kind DeltaKind) *block {
	b := &block{index: index, kind: kind}
	g.blocks = append(g.blocks, b)
	return b
}

// addPart adds a complete part. A Reasoning replaces the reasoning text of its
// index; any other part, and a second Reasoning, is a new block.
func (g *Gatherer) addPart(index int, p Part) {
	if _, ok := p.(Reasoning); !ok {
		g.begin(index, DeltaPart).part = p
		return
	}
	b := g.block(index, DeltaReasoning)
	if b.part != nil {
		b = g.begin(index, DeltaReasoning)
	}
	b.part = p
}

// Response returns the response so far. Without a DeltaDone, or with a tool call
// that never ended, it also returns an *Error that wraps io.ErrUnexpectedEOF.
// Such a call is no error in a response cut off by max_tokens, none of whose
// calls may run.
func (g *Gatherer) Response() (*Response, error) {
	r := &Response{Usage: g.usage, Stop: g.last.Stop, ID: g.last.ResponseID, Model: g.last.Model, By: g.by}
	complete := g.done
	for _, b := range g.blocks {
		switch {
		case b.part != nil:
			r.Parts = append(r.Parts, b.part)
		case b.kind == DeltaText && b.text.Len() > 0:
			r.Parts = append(r.Parts, Text{b.text.String()})
		case b.kind == DeltaReasoning && b.text.Len() > 0:
			r.Parts = append(r.Parts, Reasoning{Text: b.text.String()})
		case b.kind == DeltaToolStart:
			call := b.call
			call.Args = b.text.String()
			r.Parts = append(r.Parts, call)
			complete = complete && (b.ended || r.Stop == StopMaxTokens)
		}
	}
	if !complete {
		return r, &Error{Code: CodeNetwork, Message: "the response ended early", Err: io.ErrUnexpectedEOF}
	}
	return r, nil
}
