package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// answer decodes the events of one answer. See
// https://platform.claude.com/docs/en/build-with-claude/streaming.
type answer struct {
	emit      func(model.Delta) error
	provider  string
	requested string // the requested model

	id, model string
	usage     usage
	stop      string
	ended     bool
	open      *openBlock
	piece     blockDelta
	call      int // 1 + index of a call whose end is not yet emitted
}

// openBlock is the block that is being received.
type openBlock struct {
	index     int
	kind      string
	text      []byte // of thinking
	signature []byte
	input     json.RawMessage // of a call, at the beginning of the block
	begun     bool            // arguments of the call were emitted
}

type usage struct {
	Input      *wire.Count `json:"input_tokens"`
	CacheWrite *wire.Count `json:"cache_creation_input_tokens"`
	CacheRead  *wire.Count `json:"cache_read_input_tokens"`
	Output     *wire.Count `json:"output_tokens"`
	Details    *details    `json:"output_tokens_details"`
}

type details struct {
	Thinking wire.Count `json:"thinking_tokens"`
}

// The usage never makes an answer invalid.

func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	return wire.Lenient(data, (*plain)(u))
}

func (d *details) UnmarshalJSON(data []byte) error {
	type plain details
	return wire.Lenient(data, (*plain)(d))
}

// merge takes over the counts of a later event, which has only those that changed.
func (u *usage) merge(v usage) {
	for _, pair := range [][2]**wire.Count{{&u.Input, &v.Input}, {&u.CacheWrite, &v.CacheWrite}, {&u.CacheRead, &v.CacheRead}, {&u.Output, &v.Output}} {
		if *pair[1] != nil {
			*pair[0] = *pair[1]
		}
	}
	if v.Details != nil {
		u.Details = v.Details
	}
}

func (u *usage) total() model.Usage {
	n := func(p *wire.Count) int {
		if p == nil {
			return 0
		}
		return int(*p)
	}
	out := model.Usage{
		Input: n(u.Input) + n(u.CacheWrite) + n(u.CacheRead), CachedInput: n(u.CacheRead), CacheWrite: n(u.CacheWrite), Output: n(u.Output),
	}
	if u.Details != nil {
		out.Reasoning = int(u.Details.Thinking)
	}
	return out
}

// Event implements [wire.Decoder].
func (a *answer) Event(kind string, data []byte) error {
	switch kind {
	case "content_block_delta":
		return a.delta(data)
	case "content_block_start":
		return a.begin(data)
	case "content_block_stop":
		return a.end()
	case "message_start":
		return a.start(data)
	case "message_delta":
		return a.finish(data)
	case "message_stop":
		a.ended = true
		return wire.ErrDone
	case "error":
		return &wire.Failed{Data: data}
	case "":
		return a.untyped(data)
	}
	return nil // ping, or something new
}

// untyped handles an event whose type is only in its data, or an error in place
// of a stream.
func (a *answer) untyped(data []byte) error {
	var head struct{ Type string }
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Type == "" || head.Type == "message" {
		return errors.New("not a stream of the Messages API")
	}
	return a.Event(head.Type, data)
}

func (a *answer) start(data []byte) error {
	var e struct {
		Message struct {
			ID, Model string
			Usage     usage
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	a.id, a.model = e.Message.ID, e.Message.Model
	a.usage.merge(e.Message.Usage)
	return nil
}

func (a *answer) begin(data []byte) error {
	var e struct {
		Index int
		Block struct {
			Type, ID, Name, Text, Thinking, Signature, Data string
			Input                                           json.RawMessage
		} `json:"content_block"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	if err := a.endCall(); err != nil {
		return err
	}
	b := e.Block
	a.open = &openBlock{index: e.Index, kind: b.Type, input: b.Input}
	switch b.Type {
	case "text":
		return a.text(model.DeltaText, b.Text)
	case "thinking":
		a.open.signature = append(a.open.signature, b.Signature...)
		return a.text(model.DeltaReasoning, b.Thinking)
	case "redacted_thinking":
		raw := wire.AppendField([]byte(`{"type":"redacted_thinking",`), "data", b.Data)
		raw = append(raw, '}')
		return a.emit(model.Delta{Kind: model.DeltaPart, Index: e.Index, Part: model.Opaque{Provider: a.provider, Model: a.requested, Raw: raw}})
	case "tool_use":
		if b.ID == "" || b.Name == "" {
			return errors.New("a tool call has no id or name")
		}
		return a.emit(model.Delta{Kind: model.DeltaToolStart, Index: e.Index, ID: b.ID, Name: b.Name})
	}
	return nil
}

func (a *answer) text(kind model.DeltaKind, text string) error {
	if text == "" {
		return nil
	}
	if kind == model.DeltaReasoning {
		a.open.text = append(a.open.text, text...)
	}
	return a.emit(model.Delta{Kind: kind, Index: a.open.index, Text: text})
}

// blockDelta is the event content_block_delta.
type blockDelta struct {
	Index int   `json:"index"`
	Delta delta `json:"delta"`
}

type delta struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	JSON      string `json:"partial_json"`
}

// decode replaces e by the event in data. It keeps the string of the type, which
// is mostly that of the previous event.
func (e *blockDelta) decode(data []byte) error {
	reset := func() { *e = blockDelta{Delta: delta{Type: e.Delta.Type}} }
	reset()
	return wire.Decode(data, e, func(s *wire.Scanner) bool { return e.scan(s) }, reset)
}

func (e *blockDelta) scan(s *wire.Scanner) bool {
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.Int(&e.Index)
		case "delta":
			return s.Object(func(key []byte) bool { return e.Delta.scan(s, key) })
		}
		return s.Skip()
	})
}

func (d *delta) scan(s *wire.Scanner, key []byte) bool {
	switch string(key) {
	case "type":
		return s.Text(&d.Type)
	case "text":
		return s.Text(&d.Text)
	case "thinking":
		return s.Text(&d.Thinking)
	case "signature":
		return s.Text(&d.Signature)
	case "partial_json":
		return s.Text(&d.JSON)
	}
	return s.Skip()
}

func (a *answer) delta(data []byte) error {
	e := &a.piece
	if err := e.decode(data); err != nil {
		return err
	}
	if a.open == nil || a.open.index != e.Index {
		return fmt.Errorf("an event continues block %d, which is not open", e.Index)
	}
	switch d := &e.Delta; d.Type {
	case "text_delta":
		return a.text(model.DeltaText, d.Text)
	case "thinking_delta":
		return a.text(model.DeltaReasoning, d.Thinking)
	case "signature_delta":
		a.open.signature = append(a.open.signature, d.Signature...)
	case "input_json_delta":
		return a.args(d.JSON)
	}
	return nil
}

func (a *answer) args(text string) error {
	if text == "" || a.open.kind != "tool_use" {
		return nil
	}
	a.open.begun = true
	return a.emit(model.Delta{Kind: model.DeltaToolArgs, Index: a.open.index, Text: text})
}

// end ends the open block. Whether a call is complete shows only later: the API
// also ends the block of a call that it cuts off.
func (a *answer) end() error {
	b := a.open
	if b == nil {
		return errors.New("an event ends a block that is not open")
	}
	a.open = nil
	switch {
	case b.kind == "thinking" && len(b.signature) > 0:
		part := model.Reasoning{Text: string(b.text), Signature: author(a.provider, a.requested) + string(b.signature)}
		return a.emit(model.Delta{Kind: model.DeltaPart, Index: b.index, Part: part})
	case b.kind == "tool_use":
		a.call = b.index + 1
		if !b.begun && len(b.input) > 0 {
			return a.emit(model.Delta{Kind: model.DeltaToolArgs, Index: b.index, Text: string(b.input)})
		}
	}
	return nil
}

// endCall emits the end of the last call, if that is due.
func (a *answer) endCall() error {
	if a.call == 0 {
		return nil
	}
	index := a.call - 1
	a.call = 0
	return a.emit(model.Delta{Kind: model.DeltaToolEnd, Index: index})
}

func (a *answer) finish(data []byte) error {
	var e struct {
		Delta struct {
			Stop string `json:"stop_reason"`
		}
		Usage usage
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	a.usage.merge(e.Usage)
	if e.Delta.Stop != "" {
		a.stop = e.Delta.Stop
	}
	if a.stop == "" || stopReasons[a.stop] == model.StopMaxTokens {
		return nil
	}
	return a.endCall()
}

var stopReasons = map[string]model.StopReason{
	"end_turn": model.StopEnd, "stop_sequence": model.StopEnd, "tool_use": model.StopToolCalls,
	"max_tokens": model.StopMaxTokens, "model_context_window_exceeded": model.StopMaxTokens, "refusal": model.StopRefusal,
}

// Done implements [wire.Decoder].
func (a *answer) Done() (model.Delta, error) {
	if !a.ended || a.stop == "" {
		return model.Delta{}, io.ErrUnexpectedEOF
	}
	stop, ok := stopReasons[a.stop]
	if !ok {
		stop = model.StopOther
	}
	return model.Delta{Kind: model.DeltaDone, Stop: stop, Usage: a.usage.total(), ResponseID: a.id, Model: a.model}, nil
}
