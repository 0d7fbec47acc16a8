package langchain

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/internal/longtext"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// answer joins the chunks of a completion and emits them as deltas. Its zero value
// with an emit function is ready to use.
type answer struct {
	emit func(model.Delta) error

	id, model string
	finishing string // the finish reason; a later chunk without one does not erase it
	usage     wireUsage
	text      block
	think     thinkTags
	reasoning block
	refused   bool
	blocks    int // number of blocks so far
	calls     []*call
	byIndex   map[int]*call
	chunk     chunk
}

// block is the text or the reasoning of the answer.
type block struct {
	text  longtext.Text
	index int
	begun bool
}

// call is one tool call of the answer.
type call struct {
	id, name string
	args     []byte
	index    int
	started  bool
	sentID   bool // the id is the server's
}

// chunk is a chat.completion.chunk, or a chat.completion, which has a message
// instead of a delta.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *wireUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	Message      *delta `json:"message"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content          content    `json:"content"`
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"` // ReasoningContent of Ollama
	Refusal          string     `json:"refusal"`
	ToolCalls        []callPart `json:"tool_calls"`
}

type callPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string   `json:"name"`
		Arguments argsText `json:"arguments"`
	} `json:"function"`
}

// argsText is the JSON of arguments. Some servers send the object itself instead
// of a string.
type argsText string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *argsText) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(a))
	}
	if string(data) != "null" {
		*a = argsText(data)
	}
	return nil
}

type wireUsage struct {
	Prompt        wire.Count    `json:"prompt_tokens"`
	Completion    wire.Count    `json:"completion_tokens"`
	Total         wire.Count    `json:"total_tokens"`
	PromptDetails promptDetails `json:"prompt_tokens_details"`
	Details       outputDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	Cached wire.Count `json:"cached_tokens"`
}

type outputDetails struct {
	Reasoning wire.Count `json:"reasoning_tokens"`
}

// The usage never makes an answer invalid.

func (u *wireUsage) UnmarshalJSON(data []byte) error {
	type plain wireUsage
	return wire.Lenient(data, (*plain)(u))
}

func (d *promptDetails) UnmarshalJSON(data []byte) error {
	type plain promptDetails
	return wire.Lenient(data, (*plain)(d))
}

func (d *outputDetails) UnmarshalJSON(data []byte) error {
	type plain outputDetails
	return wire.Lenient(data, (*plain)(d))
}

// finished reports whether there is a finish reason.
func (a *answer) finished() bool { return a.finishing != "" }

// Event implements [wire.Decoder].
func (a *answer) Event(kind string, data []byte) error {
	switch {
	case string(data) == "[DONE]":
		return wire.ErrDone
	case kind == "error":
		return &wire.Failed{Data: data}
	}
	return a.add(data)
}

// add adds the next chunk.
func (a *answer) add(data []byte) error {
	c := &a.chunk
	if err := c.decode(data); err != nil {
		return err
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return &wire.Failed{Data: data}
	}
	if a.id == "" {
		a.id = c.ID
	}
	if a.model == "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = *c.Usage
	}
	for i := range c.Choices {
		if c.Choices[i].Index == 0 { // others are never requested
			if c.Choices[i].FinishReason == "error" {
				return &wire.Failed{Data: data}
			}
			if err := a.addChoice(&c.Choices[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *answer) addChoice(c *choice) error {
	if c.FinishReason != "" {
		a.finishing = c.FinishReason
	}
	d := &c.Delta
	if c.Message != nil {
		d = c.Message
	}
	text, thought := a.think.split(d.Content.text)
	if err := a.addText(&a.reasoning, model.DeltaReasoning, d.ReasoningContent+d.Reasoning+d.Content.thought+thought); err != nil {
		return err
	}
	a.refused = a.refused || d.Refusal != ""
	if err := a.addText(&a.text, model.DeltaText, text+d.Refusal); err != nil {
		return err
	}
	for i := range d.ToolCalls {
		if err := a.addCall(i, &d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) addText(b *block, kind model.DeltaKind, text string) error {
	if text == "" {
		return nil
	}
	if !b.begun {
		b.begun, b.index = true, a.nextBlock()
	}
	b.text.Add(text)
	return a.emit(model.Delta{Kind: kind, Index: b.index, Text: text})
}

func (a *answer) nextBlock() int {
	a.blocks++
	return a.blocks - 1
}

// addCall adds a piece of a tool call, the n-th of its chunk. The call starts when
// its name is known; earlier arguments are held back until then.
func (a *answer) addCall(n int, p *callPart) error {
	c := a.callFor(n, p)
	if c.id == "" && p.ID != "" {
		c.id, c.sentID = p.ID, true
	}
	if c.name == "" {
		c.name = p.Function.Name
	}
	args := string(p.Function.Arguments)
	c.args = append(c.args, args...)
	if c.name == "" {
		return nil
	}
	if !c.started {
		c.started, c.index = true, a.nextBlock()
		if c.id == "" || a.hasID(c) {
			c.id = "call_" + rand.Text()
		}
		if err := a.emit(model.Delta{Kind: model.DeltaToolStart, Index: c.index, ID: c.id, Name: c.name}); err != nil {
			return err
		}
		args = string(c.args)
	}
	if args == "" {
		return nil
	}
	return a.emit(model.Delta{Kind: model.DeltaToolArgs, Index: c.index, Text: args})
}

// hasID reports whether another call has the id of c.
func (a *answer) hasID(c *call) bool {
	return slices.ContainsFunc(a.calls, func(other *call) bool { return other != c && other.id == c.id })
}

// callFor returns the call that a piece belongs to. Some servers send index 0 for
// all calls or no index, and some no ids.
func (a *answer) callFor(n int, p *callPart) *call {
	index := n
	switch {
	case p.Index != nil:
		index = *p.Index
	case p.ID == "" && p.Function.Name == "" && len(a.calls) > 0:
		return a.calls[len(a.calls)-1]
	}
	c := a.byIndex[index]
	if c != nil && c.continuedBy(p) {
		return c
	}
	c = &call{}
	a.calls = append(a.calls, c)
	if a.byIndex == nil {
		a.byIndex = map[int]*call{}
	}
	a.byIndex[index] = c
	return c
}

// continuedBy reports whether a piece with the index of c belongs to it. A piece
// without a name does; one with another id does not. Without ids, a name begins a
// new call if it is another or if the arguments so far are complete.
func (c *call) continuedBy(p *callPart) bool {
	switch name := p.Function.Name; {
	case name == "" || c.name == "":
		return true
	case p.ID != "" && c.sentID:
		return p.ID == c.id
	case name != c.name:
		return false
	}
	return p.Function.Arguments == "" || !json.Valid(c.args)
}

// Done implements [wire.Decoder]. Some servers leave out [DONE], and proxies send
// it even if their own source ended early: the finish reason decides. The last
// delta comes from reconcile.
func (a *answer) Done() (model.Delta, error) {
	if !a.finished() {
		return model.Delta{}, io.ErrUnexpectedEOF
	}
	return model.Delta{}, a.finish()
}

// finish ends the calls of the answer, unless it was cut off.
func (a *answer) finish() error {
	b, kind := &a.text, model.DeltaText
	if a.think.state == thinkInside { // the answer ended before the end tag
		b, kind = &a.reasoning, model.DeltaReasoning
	}
	if err := a.addText(b, kind, a.think.rest()); err != nil {
		return err
	}
	stop := stopReason(a.finishing, len(a.calls))
	if len(a.calls) == 0 && stop == model.StopToolCalls {
		return errors.New("its finish reason is tool_calls, but it has none")
	}
	for _, c := range a.calls {
		if c.name == "" {
			return errors.New("a tool call has no name")
		}
		if stop == model.StopMaxTokens {
			continue
		}
		if err := a.emit(model.Delta{Kind: model.DeltaToolEnd, Index: c.index}); err != nil {
			return err
		}
	}
	return nil
}

// completion returns the answer as a completion for langchaingo to parse.
func (a *answer) completion() []byte {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	type message struct {
		Role      string     `json:"role"`
		Content   string     `json:"content"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
	type completedChoice struct {
		Message      message `json:"message"`
		FinishReason string  `json:"finish_reason"`
	}
	m := message{Role: "assistant", Content: a.text.text.String(), Reasoning: a.reasoning.text.String()}
	for _, c := range a.calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{c.id, "function", function{c.name, string(c.args)}})
	}
	body, _ := json.Marshal(struct { // strings and numbers always marshal
		ID      string            `json:"id"`
		Object  string            `json:"object"`
		Model   string            `json:"model"`
		Choices []completedChoice `json:"choices"`
		Usage   wireUsage         `json:"usage"`
	}{a.id, "chat.completion", a.model, []completedChoice{{m, a.finishing}}, a.usage})
	return body
}

// reconcile returns the last delta, from langchaingo's result, which must be what
// was streamed.
func (a *answer) reconcile(result *llms.ContentResponse) (model.Delta, error) {
	if len(result.Choices) != 1 || result.Choices[0].Content != a.text.text.String() || len(result.Choices[0].ToolCalls) != len(a.calls) {
		return model.Delta{}, errors.New("langchaingo's result differs from what was streamed")
	}
	choice := result.Choices[0]
	for i, c := range choice.ToolCalls {
		if want := a.calls[i]; c.FunctionCall == nil || c.ID != want.id || c.FunctionCall.Arguments != string(want.args) {
			return model.Delta{}, fmt.Errorf("tool call %q of langchaingo's result differs from what was streamed", want.id)
		}
	}
	stop := stopReason(choice.StopReason, len(a.calls))
	if stop == model.StopEnd && a.refused {
		stop = model.StopRefusal
	}
	return model.Delta{Kind: model.DeltaDone, Stop: stop, Usage: usage(choice.GenerationInfo), ResponseID: a.id, Model: a.model}, nil
}
