package openai

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// answer decodes the events of one answer. See
// https://platform.openai.com/docs/api-reference/responses-streaming.
type answer struct {
	emit     func(model.Delta) error
	provider string
	asked    string // the model that was asked for

	piece   piece
	calls   map[int]*call // by index of their item
	part    int           // of the reasoning summary, so far
	refused bool
	end     *response // of the event that ends the stream
	kind    string    // of that event
}

// call is a call that is being received.
type call struct{ begun, ended bool }

// piece is what is read of the many small events.
type piece struct {
	Index   int    `json:"output_index"`
	Summary int    `json:"summary_index"`
	Delta   string `json:"delta"`
}

func (p *piece) decode(data []byte) error {
	reset := func() { *p = piece{} }
	reset()
	return wire.Decode(data, p, func(s *wire.Scanner) bool {
		return s.Object(func(key []byte) bool {
			switch string(key) {
			case "output_index":
				return s.Int(&p.Index)
			case "summary_index":
				return s.Int(&p.Summary)
			case "delta":
				return s.Text(&p.Delta)
			}
			return s.Skip()
		})
	}, reset)
}

// response is the object that the events about the whole answer hold.
type response struct {
	ID, Model  string
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Usage      struct {
		Input        int `json:"input_tokens"`
		Output       int `json:"output_tokens"`
		InputDetails struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
}

// Event implements [wire.Decoder].
func (a *answer) Event(kind string, data []byte) error {
	switch kind {
	case "response.output_text.delta":
		return a.text(model.DeltaText, data)
	case "response.refusal.delta":
		a.refused = true
		return a.text(model.DeltaText, data)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.text(model.DeltaReasoning, data)
	case "response.function_call_arguments.delta":
		return a.args(data)
	case "response.output_item.added":
		return a.begin(data)
	case "response.output_item.done":
		return a.item(data)
	case "response.completed", "response.incomplete":
		return a.finish(kind, data)
	case "response.failed", "error":
		return &wire.Failed{Data: data}
	case "":
		return a.untyped(data)
	}
	return nil // repetitions of what came in pieces, progress, and what is new
}

// untyped takes an event whose type stands in its data only, or an error that
// came instead of a stream.
func (a *answer) untyped(data []byte) error {
	if string(data) == "[DONE]" {
		return wire.ErrDone
	}
	var head struct {
		Type  string
		Error json.RawMessage
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	switch {
	case len(head.Error) > 0 && string(head.Error) != "null":
		return &wire.Failed{Data: data}
	case head.Type == "":
		return errors.New("it is not a stream of events of the Responses API (for a service that only has the chat API, set providers." + a.provider + ".api to chat)")
	}
	return a.Event(head.Type, data)
}

func (a *answer) text(kind model.DeltaKind, data []byte) error {
	if err := a.piece.decode(data); err != nil {
		return err
	}
	text := a.piece.Delta
	if kind == model.DeltaReasoning && a.piece.Summary > a.part {
		a.part = a.piece.Summary
		text = "\n\n" + text
	}
	if text == "" {
		return nil
	}
	return a.emit(model.Delta{Kind: kind, Index: a.piece.Index, Text: text})
}

func (a *answer) args(data []byte) error {
	if err := a.piece.decode(data); err != nil {
		return err
	}
	c := a.calls[a.piece.Index]
	switch {
	case c == nil || c.ended:
		return errors.New("it goes on with a tool call that is not open")
	case a.piece.Delta == "":
		return nil
	}
	c.begun = true
	return a.emit(model.Delta{Kind: model.DeltaToolArgs, Index: a.piece.Index, Text: a.piece.Delta})
}

// outputItem is what is read of an item of the answer.
type outputItem struct {
	Index int `json:"output_index"`
	Item  json.RawMessage
}

type itemHead struct {
	Type, Status, Name, Arguments string
	CallID                        string `json:"call_id"`
	Encrypted                     string `json:"encrypted_content"`
}

func readItem(data []byte) (outputItem, itemHead, error) {
	var e outputItem
	var h itemHead
	if err := json.Unmarshal(data, &e); err != nil {
		return e, h, err
	}
	err := json.Unmarshal(e.Item, &h)
	return e, h, err
}

func (a *answer) begin(data []byte) error {
	e, h, err := readItem(data)
	if err != nil {
		return err
	}
	a.part = 0
	if h.Type != "function_call" {
		return nil
	}
	return a.open(e.Index, h)
}

func (a *answer) open(index int, h itemHead) error {
	if h.CallID == "" || h.Name == "" || a.calls[index] != nil {
		return errors.New("it has a tool call without an id or a name, or the same one twice")
	}
	if a.calls == nil {
		a.calls = map[int]*call{}
	}
	a.calls[index] = &call{}
	return a.emit(model.Delta{Kind: model.DeltaToolStart, Index: index, ID: h.CallID, Name: h.Name})
}

// item takes a whole item.
func (a *answer) item(data []byte) error {
	e, h, err := readItem(data)
	if err != nil {
		return err
	}
	switch {
	case h.Type == "function_call":
		return a.endCall(e.Index, h)
	case h.Type == "reasoning" && h.Encrypted != "":
		part := model.Opaque{Provider: a.provider, Model: a.asked, Raw: append(json.RawMessage(nil), e.Item...)}
		return a.emit(model.Delta{Kind: model.DeltaPart, Index: e.Index, Part: part})
	}
	return nil
}

func (a *answer) endCall(index int, h itemHead) error {
	if a.calls[index] == nil {
		if err := a.open(index, h); err != nil {
			return err
		}
	}
	c := a.calls[index]
	if c.ended {
		return errors.New("it ends a tool call twice")
	}
	if !c.begun && h.Arguments != "" {
		c.begun = true
		if err := a.emit(model.Delta{Kind: model.DeltaToolArgs, Index: index, Text: h.Arguments}); err != nil {
			return err
		}
	}
	if h.Status == "incomplete" {
		return nil // it was cut
	}
	c.ended = true
	return a.emit(model.Delta{Kind: model.DeltaToolEnd, Index: index})
}

func (a *answer) finish(kind string, data []byte) error {
	var e struct{ Response response }
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	a.end, a.kind = &e.Response, kind
	return wire.ErrDone
}

// Done implements [wire.Decoder].
func (a *answer) Done() (model.Delta, error) {
	if a.end == nil {
		return model.Delta{}, io.ErrUnexpectedEOF
	}
	stop := a.stop()
	for _, c := range a.calls {
		if !c.ended && stop != model.StopMaxTokens {
			return model.Delta{}, errors.New("it ends in the middle of a tool call")
		}
	}
	u := a.end.Usage
	return model.Delta{
		Kind: model.DeltaDone, Stop: stop, ResponseID: a.end.ID, Model: a.end.Model,
		Usage: model.Usage{Input: u.Input, CachedInput: u.InputDetails.Cached, Output: u.Output, Reasoning: u.OutputDetails.Reasoning},
	}, nil
}

func (a *answer) stop() model.StopReason {
	switch {
	case a.kind == "response.incomplete" && a.end.Incomplete.Reason == "max_output_tokens":
		return model.StopMaxTokens
	case a.kind == "response.incomplete" && a.end.Incomplete.Reason == "content_filter":
		return model.StopContentFilter
	case a.kind == "response.incomplete":
		return model.StopOther
	case len(a.calls) > 0:
		return model.StopToolCalls
	case a.refused:
		return model.StopRefusal
	}
	return model.StopEnd
}
