package gemini

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// answer decodes the events of one answer. Each has the form of a complete answer
// and contains a piece of it.
type answer struct {
	emit      func(model.Delta) error
	provider  string
	requested string // the requested model

	chunk     chunk
	id, model string
	usage     usage
	finish    string
	message   string // with finish
	blocked   bool
	block     int // 1 + index of the current block
	kind      model.DeltaKind
	calls     int
}

type chunk struct {
	Candidates []candidate     `json:"candidates"`
	Feedback   *feedback       `json:"promptFeedback"`
	Usage      *usage          `json:"usageMetadata"`
	Model      string          `json:"modelVersion"`
	ID         string          `json:"responseId"`
	Error      json.RawMessage `json:"error"`
}

type candidate struct {
	Index   int     `json:"index"`
	Content content `json:"content"`
	Finish  string  `json:"finishReason"`
	Message string  `json:"finishMessage"`
}

type content struct {
	Parts []part `json:"parts"`
}

type part struct {
	Text      string        `json:"text"`
	Thought   bool          `json:"thought"`
	Signature string        `json:"thoughtSignature"`
	Call      *functionCall `json:"functionCall"`
}

type functionCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type feedback struct {
	BlockReason string `json:"blockReason"`
}

type usage struct {
	Prompt     wire.Count `json:"promptTokenCount"`
	ToolPrompt wire.Count `json:"toolUsePromptTokenCount"`
	Cached     wire.Count `json:"cachedContentTokenCount"`
	Candidates wire.Count `json:"candidatesTokenCount"`
	Thoughts   wire.Count `json:"thoughtsTokenCount"`
}

// UnmarshalJSON implements [json.Unmarshaler]. The usage never makes an answer
// invalid.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	return wire.Lenient(data, (*plain)(u))
}

func (u *usage) total() model.Usage {
	return model.Usage{Input: int(u.Prompt + u.ToolPrompt), CachedInput: int(u.Cached), Output: int(u.Candidates + u.Thoughts), Reasoning: int(u.Thoughts)}
}

// decode replaces c by the chunk in data.
func (c *chunk) decode(data []byte) error {
	reset := func() {
		clear(c.Candidates[:cap(c.Candidates)])
		*c = chunk{ID: c.ID, Model: c.Model, Candidates: c.Candidates[:0]}
	}
	reset()
	return wire.Decode(data, c, c.scan, reset)
}

// scan reads the most frequent chunks, those of text.
func (c *chunk) scan(s *wire.Scanner) bool {
	return s.Members(func(key []byte) bool {
		switch string(key) {
		case "candidates":
			return len(c.Candidates) == 0 && s.Array(func() bool {
				c.Candidates = append(c.Candidates, candidate{})
				return c.Candidates[len(c.Candidates)-1].scan(s)
			})
		case "usageMetadata":
			c.Usage = &usage{}
			return c.Usage.scan(s)
		case "modelVersion":
			return s.Text(&c.Model)
		case "responseId":
			return s.Text(&c.ID)
		case "promptFeedback", "error":
			return false
		}
		return s.Skip()
	})
}

func (c *candidate) scan(s *wire.Scanner) bool {
	return s.Members(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.Int(&c.Index)
		case "finishReason":
			return s.Text(&c.Finish)
		case "finishMessage":
			return s.Text(&c.Message)
		case "content":
			return s.Members(func(key []byte) bool {
				if string(key) != "parts" {
					return s.Skip()
				}
				return len(c.Content.Parts) == 0 && s.Array(func() bool {
					c.Content.Parts = append(c.Content.Parts, part{})
					return c.Content.Parts[len(c.Content.Parts)-1].scan(s)
				})
			})
		}
		return s.Skip()
	})
}

func (p *part) scan(s *wire.Scanner) bool {
	return s.Members(func(key []byte) bool {
		switch string(key) {
		case "text":
			return s.Text(&p.Text)
		case "thought":
			p.Thought = s.Literal("true")
			return p.Thought || s.Literal("false")
		case "thoughtSignature":
			return s.Text(&p.Signature)
		}
		return false
	})
}

func (u *usage) scan(s *wire.Scanner) bool {
	return s.Members(func(key []byte) bool {
		switch string(key) {
		case "promptTokenCount":
			return s.Int((*int)(&u.Prompt))
		case "toolUsePromptTokenCount":
			return s.Int((*int)(&u.ToolPrompt))
		case "cachedContentTokenCount":
			return s.Int((*int)(&u.Cached))
		case "candidatesTokenCount":
			return s.Int((*int)(&u.Candidates))
		case "thoughtsTokenCount":
			return s.Int((*int)(&u.Thoughts))
		}
		return s.Skip()
	})
}

// Event implements [wire.Decoder].
func (a *answer) Event(_ string, data []byte) error {
	c := &a.chunk
	if err := c.decode(data); err != nil {
		return err
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return &wire.Failed{Data: data}
	}
	a.id, a.model = c.ID, c.Model
	if c.Usage != nil {
		a.usage = *c.Usage
	}
	a.blocked = a.blocked || c.Feedback != nil && c.Feedback.BlockReason != ""
	for i := range c.Candidates {
		if c.Candidates[i].Index != 0 {
			continue // never requested
		}
		if err := a.candidate(&c.Candidates[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) candidate(c *candidate) error {
	for i := range c.Content.Parts {
		if err := a.part(&c.Content.Parts[i]); err != nil {
			return err
		}
	}
	if c.Finish != "" {
		a.finish, a.message = c.Finish, c.Message
	}
	return nil
}

func (a *answer) part(p *part) error {
	if p.Text != "" {
		kind := model.DeltaText
		if p.Thought {
			kind = model.DeltaReasoning
		}
		if err := a.emit(model.Delta{Kind: kind, Index: a.next(kind), Text: p.Text}); err != nil {
			return err
		}
	}
	if p.Signature != "" {
		if err := a.sign(p); err != nil {
			return err
		}
	}
	if p.Call == nil {
		return nil
	}
	return a.call(p.Call)
}

// next returns the index of the block for a piece of that kind. Each call and
// each signature is a separate block.
func (a *answer) next(kind model.DeltaKind) int {
	if a.kind != kind || kind == model.DeltaPart || kind == model.DeltaToolStart {
		a.block++
		a.kind = kind
	}
	return a.block - 1
}

// sign emits a signature. That of a call comes before the call.
func (a *answer) sign(p *part) error {
	raw, err := wire.Marshal(signature{p.Signature, p.Call != nil})
	if err != nil {
		return err
	}
	return a.emit(model.Delta{Kind: model.DeltaPart, Index: a.next(model.DeltaPart), Part: model.Opaque{Provider: a.provider, Model: a.requested, Raw: raw}})
}

// call emits a call, which is not streamed.
func (a *answer) call(c *functionCall) error {
	if c.Name == "" {
		return errors.New("a tool call has no name")
	}
	a.calls++
	id, args := c.ID, string(c.Args)
	if id == "" {
		id = "call_" + rand.Text()
	}
	if args == "" || args == "null" {
		args = "{}"
	}
	index := a.next(model.DeltaToolStart)
	for _, d := range []model.Delta{
		{Kind: model.DeltaToolStart, Index: index, ID: id, Name: c.Name},
		{Kind: model.DeltaToolArgs, Index: index, Text: args},
		{Kind: model.DeltaToolEnd, Index: index},
	} {
		if err := a.emit(d); err != nil {
			return err
		}
	}
	return nil
}

// Done implements [wire.Decoder].
func (a *answer) Done() (model.Delta, error) {
	if a.finish == "" && !a.blocked {
		return model.Delta{}, io.ErrUnexpectedEOF
	}
	stop, err := a.stop()
	if err != nil {
		return model.Delta{}, err
	}
	return model.Delta{
		Kind: model.DeltaDone, Stop: stop, ResponseID: a.id, Model: a.model,
		Usage: a.usage.total(),
	}, nil
}

func (a *answer) stop() (model.StopReason, error) {
	switch a.finish {
	case "STOP":
		if a.calls > 0 {
			return model.StopToolCalls, nil
		}
		return model.StopEnd, nil
	case "MAX_TOKENS":
		return model.StopMaxTokens, nil
	case "", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return model.StopContentFilter, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return "", fmt.Errorf("the model made an invalid tool call (%s) %s", a.finish, a.message)
	}
	return model.StopOther, nil
}
