package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// answer decodes the events of one answer. See
// https://platform.openai.com/docs/api-reference/responses-streaming.
type answer struct {
	emit      func(model.Delta) error
	provider  string
	requested string // the requested model

	piece    piece
	calls    map[int]*call // by index of their item
	streamed map[int]bool  // items whose text has begun
	part     int           // of the reasoning summary, so far
	refused  bool
	end      *response // of the event that ends the stream
	kind     string    // of that event
}

// call is a tool call that is being received.
type call struct{ begun, ended bool }

// piece is the part of the frequent small events that is used.
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

// response is the object in the events about the whole answer.
type response struct {
	ID, Model  string
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Usage      usage
}

type usage struct {
	Input         wire.Count    `json:"input_tokens"`
	Output        wire.Count    `json:"output_tokens"`
	InputDetails  inputDetails  `json:"input_tokens_details"`
	OutputDetails outputDetails `json:"output_tokens_details"`
}

type inputDetails struct {
	Cached  wire.Count `json:"cached_tokens"`
	Written wire.Count `json:"cache_write_tokens"`
}

type outputDetails struct {
	Reasoning wire.Count `json:"reasoning_tokens"`
}

// The usage never makes an answer invalid.

func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	return wire.Lenient(data, (*plain)(u))
}

func (u *usage) total() model.Usage {
	return model.Usage{
		Input: int(u.Input), CachedInput: int(u.InputDetails.Cached), CacheWrite: int(u.InputDetails.Written),
		Output: int(u.Output), Reasoning: int(u.OutputDetails.Reasoning),
	}
}

func (d *inputDetails) UnmarshalJSON(data []byte) error {
	type plain inputDetails
	return wire.Lenient(data, (*plain)(d))
}

func (d *outputDetails) UnmarshalJSON(data []byte) error {
	type plain outputDetails
	return wire.Lenient(data, (*plain)(d))
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
	case "response.output_item.added", "response.output_item.done":
		it, err := readItem(data)
		switch {
		case err != nil:
			return err
		case kind == "response.output_item.added":
			return a.begin(&it)
		}
		return a.done(&it)
	case "response.completed", "response.incomplete":
		return a.finish(kind, data)
	case "response.failed", "error":
		return &wire.Failed{Data: data}
	case "":
		return a.untyped(data)
	}
	return nil // repeats streamed content, reports progress, or is new
}

// untyped handles an event whose type is only in its data, or a response that is
// not a stream.
func (a *answer) untyped(data []byte) error {
	if string(data) == "[DONE]" {
		return wire.ErrDone
	}
	var head struct {
		Type, Object string
		Error        json.RawMessage
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	switch {
	case len(head.Error) > 0 && string(head.Error) != "null":
		return &wire.Failed{Data: data}
	case head.Object == "response" && head.Type == "":
		return a.whole(data)
	case head.Type == "":
		return errors.New("not a stream of the Responses API (for a service that only has the chat API, set providers." + a.provider + ".api to chat)")
	}
	return a.Event(head.Type, data)
}

// whole handles an answer that is not streamed.
func (a *answer) whole(data []byte) error {
	var r struct {
		response
		Status string
		Output []json.RawMessage
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.Status != "completed" && r.Status != "incomplete" {
		return fmt.Errorf("its status is %q, not completed", r.Status)
	}
	for i, raw := range r.Output {
		it, err := newItem(i, raw)
		if err == nil {
			err = a.begin(&it)
		}
		if err == nil {
			err = a.done(&it)
		}
		if err != nil {
			return err
		}
	}
	a.end, a.kind = &r.response, "response."+r.Status
	return wire.ErrDone
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
	return a.emitText(kind, a.piece.Index, text)
}

func (a *answer) emitText(kind model.DeltaKind, index int, text string) error {
	if text == "" {
		return nil
	}
	if a.streamed == nil {
		a.streamed = map[int]bool{}
	}
	a.streamed[index] = true
	return a.emit(model.Delta{Kind: kind, Index: index, Text: text})
}

func (a *answer) args(data []byte) error {
	if err := a.piece.decode(data); err != nil {
		return err
	}
	c := a.calls[a.piece.Index]
	switch {
	case c == nil || c.ended:
		return errors.New("arguments for a tool call that is not open")
	case a.piece.Delta == "":
		return nil
	}
	c.begun = true
	return a.emit(model.Delta{Kind: model.DeltaToolArgs, Index: a.piece.Index, Text: a.piece.Delta})
}

// item is an item of the answer.
type item struct {
	Type      string    `json:"type"`
	Status    string    `json:"status"`
	CallID    string    `json:"call_id"`
	Name      string    `json:"name"`
	Arguments string    `json:"arguments"`
	Encrypted string    `json:"encrypted_content"`
	Phase     string    `json:"phase"`
	Content   []content `json:"content"`
	Summary   []content `json:"summary"`

	index int
	raw   json.RawMessage
}

type content struct {
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// readItem decodes the item of an event.
func readItem(data []byte) (item, error) {
	var e struct {
		Index int             `json:"output_index"`
		Item  json.RawMessage `json:"item"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return item{}, err
	}
	return newItem(e.Index, e.Item)
}

// newItem decodes an item of a known type. Others may use the same members for
// anything.
func newItem(index int, raw json.RawMessage) (item, error) {
	it := item{index: index, raw: raw}
	var head struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(raw, &head)
	it.Type = head.Type
	if err == nil && slices.Contains([]string{"message", "function_call", "reasoning", "compaction"}, head.Type) {
		err = json.Unmarshal(raw, &it)
	}
	return it, err
}

// begin handles the beginning of an item.
func (a *answer) begin(it *item) error {
	a.part = 0
	switch {
	case it.Type == "function_call":
		return a.open(it)
	case it.Phase != "":
		raw, err := wire.Marshal(phased{it.Phase})
		if err != nil || len(raw) > maxPhase {
			return err
		}
		return a.emitOpaque(it.index, raw)
	}
	return nil
}

// emitOpaque emits state that must be sent back to the model.
func (a *answer) emitOpaque(index int, raw json.RawMessage) error {
	return a.emit(model.Delta{Kind: model.DeltaPart, Index: index, Part: model.Opaque{Provider: a.provider, Model: a.requested, Raw: raw}})
}

func (a *answer) open(it *item) error {
	if it.CallID == "" || it.Name == "" || a.calls[it.index] != nil {
		return errors.New("a tool call has no id or name, or starts twice")
	}
	if a.calls == nil {
		a.calls = map[int]*call{}
	}
	a.calls[it.index] = &call{}
	return a.emit(model.Delta{Kind: model.DeltaToolStart, Index: it.index, ID: it.CallID, Name: it.Name})
}

// done handles a complete item. Usually its text has been streamed.
func (a *answer) done(it *item) error {
	switch it.Type {
	case "function_call":
		return a.endCall(it)
	case "tool_search_call":
		return a.search(it)
	case "message":
		for _, c := range it.Content {
			a.refused = a.refused || c.Refusal != ""
		}
		return a.emitUnstreamed(model.DeltaText, it.index, it.Content, "")
	case "reasoning":
		shown := it.Summary
		if len(shown) == 0 {
			shown = it.Content
		}
		if err := a.emitUnstreamed(model.DeltaReasoning, it.index, shown, "\n\n"); err != nil {
			return err
		}
	}
	if it.Encrypted == "" {
		return nil
	}
	return a.emitOpaque(it.index, it.raw)
}

// search handles a tool search that the client must run. Its arguments are not
// streamed, and are an object.
func (a *answer) search(it *item) error {
	var s struct {
		CallID    string          `json:"call_id"`
		Execution string          `json:"execution"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(it.raw, &s); err != nil || s.Execution != "client" {
		return err
	}
	it.CallID, it.Name = s.CallID, model.ToolSearch
	if json.Unmarshal(s.Arguments, &it.Arguments) != nil {
		it.Arguments = string(s.Arguments)
	}
	return a.endCall(it)
}

// emitUnstreamed emits the text of an item if none of it was streamed.
func (a *answer) emitUnstreamed(kind model.DeltaKind, index int, list []content, between string) error {
	if a.streamed[index] {
		return nil
	}
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = c.Text + c.Refusal
	}
	return a.emitText(kind, index, strings.Join(texts, between))
}

func (a *answer) endCall(it *item) error {
	if a.calls[it.index] == nil {
		if err := a.open(it); err != nil {
			return err
		}
	}
	c := a.calls[it.index]
	if c.ended {
		return errors.New("a tool call ends twice")
	}
	if !c.begun && it.Arguments != "" {
		c.begun = true
		if err := a.emit(model.Delta{Kind: model.DeltaToolArgs, Index: it.index, Text: it.Arguments}); err != nil {
			return err
		}
	}
	if it.Status == "incomplete" {
		return nil // it was cut off
	}
	return a.close(it.index, c)
}

func (a *answer) close(index int, c *call) error {
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

// Done implements [wire.Decoder]. A call that a content filter cut off ends here,
// as it does not run; one cut off by the token limit has no end.
func (a *answer) Done() (model.Delta, error) {
	if a.end == nil {
		return model.Delta{}, io.ErrUnexpectedEOF
	}
	stop := a.stop()
	for _, index := range slices.Sorted(maps.Keys(a.calls)) {
		c := a.calls[index]
		if c.ended || stop == model.StopMaxTokens {
			continue
		}
		if stop != model.StopContentFilter {
			return model.Delta{}, errors.New("it ends within a tool call")
		}
		if err := a.close(index, c); err != nil {
			return model.Delta{}, err
		}
	}
	u := a.end.Usage
	return model.Delta{
		Kind: model.DeltaDone, Stop: stop, ResponseID: a.end.ID, Model: a.end.Model,
		Usage: u.total(),
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
