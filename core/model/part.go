package model

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Part is one piece of a message. The set is sealed; what a newer version or
// a provider adds is kept as [Unknown] or [Opaque], unchanged.
type Part interface{ part() }

// Text is plain text, valid UTF-8.
type Text struct {
	Text string `json:"text"`
}

// Image is an image. In session logs and events, Blob is the SHA-256 of its
// bytes (hex); Data is set only while a request is built, and in a part that a
// tool has just returned.
type Image struct {
	MediaType string `json:"mediaType"`
	Blob      string `json:"blob,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`
	Data      []byte `json:"-"`
}

// Written returns the content of a part as a request has it: its text, or an image in
// base64. It is empty for other parts.
func Written(p Part) string {
	switch p := p.(type) {
	case Text:
		return p.Text
	case Image:
		return base64.StdEncoding.EncodeToString(p.Data)
	}
	return ""
}

// ToolCall is a model's call of a tool. Args are the arguments as the model
// wrote them: valid UTF-8, but not necessarily valid JSON.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// ToolResult is the result of the ToolCall with ID CallID. Its content contains
// no ToolResult.
type ToolResult struct {
	CallID  string `json:"callId"`
	Name    string `json:"name"`
	Content Parts  `json:"content"`
	IsError bool   `json:"isError,omitempty"`
}

// Reasoning is thinking that the provider shows. Signature is the provider's
// proof that it wrote the text, sent back unchanged.
type Reasoning struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

// ToolReference names a deferred tool that the model may call from now on.
type ToolReference struct {
	Name string `json:"name"`
}

// Opaque is private state of a provider (encrypted reasoning, thought
// signatures) that is sent back to it unchanged, and to no other. Raw is a JSON
// value; encoding/json may change the white space between its tokens.
type Opaque struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model,omitempty"`
	Raw      json.RawMessage `json:"raw"`
}

// Unknown is a part of a kind that this version does not know.
type Unknown struct {
	Kind string
	Raw  json.RawMessage
}

func (Text) part()          {}
func (Image) part()         {}
func (ToolCall) part()      {}
func (ToolResult) part()    {}
func (Reasoning) part()     {}
func (ToolReference) part() {}
func (Opaque) part()        {}
func (Unknown) part()       {}

// Parts is a list of parts. In JSON it is an array of objects, each with a
// "type" member.
type Parts []Part

// TextParts returns a list of one text.
func TextParts(text string) Parts { return Parts{Text{text}} }

// Text joins the texts of the list, without other kinds of parts.
func (ps Parts) Text() string {
	if len(ps) == 1 { // the usual case, without a copy
		t, _ := ps[0].(Text)
		return t.Text
	}
	var b strings.Builder
	for _, p := range ps {
		if t, ok := p.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// Reasoning joins the reasoning of the list that can be shown, with a blank line
// between two parts.
func (ps Parts) Reasoning() string {
	var texts []string
	for _, p := range ps {
		if r, ok := p.(Reasoning); ok && r.Text != "" {
			texts = append(texts, r.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// ToolCalls returns the tool calls of the list in order.
func (ps Parts) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, p := range ps {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// HasImage reports whether one of the parts is an image. It does not look into
// tool results.
func (ps Parts) HasImage() bool {
	for _, p := range ps {
		if _, ok := p.(Image); ok {
			return true
		}
	}
	return false
}

// EstimateTokens counts four bytes as a token, and an image as 1,000. It serves
// until a provider reports its own count.
func (ps Parts) EstimateTokens() int {
	n := 0
	for _, p := range ps {
		switch p := p.(type) {
		case Text:
			n += len(p.Text) / 4
		case Reasoning:
			n += len(p.Text) / 4
		case ToolCall:
			n += (len(p.Name) + len(p.Args)) / 4
		case ToolResult:
			n += p.Content.EstimateTokens()
		case Image:
			n += 1000
		}
	}
	return n
}

// MarshalJSON implements [json.Marshaler].
func (ps Parts) MarshalJSON() ([]byte, error) {
	buf := []byte{'['}
	for i, p := range ps {
		if i > 0 {
			buf = append(buf, ',')
		}
		b, err := marshalPart(p)
		if err != nil {
			return nil, err
		}
		buf = append(buf, b...)
	}
	return append(buf, ']'), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (ps *Parts) UnmarshalJSON(data []byte) error {
	return ps.unmarshal(data, unmarshalPart)
}

func (ps *Parts) unmarshal(data []byte, one func(json.RawMessage) (Part, error)) error {
	if list, ok := quickParts(data); ok {
		*ps = list
		return nil
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return fmt.Errorf("message parts: %w", err)
	}
	if raws == nil {
		*ps = nil
		return nil
	}
	out := make(Parts, len(raws))
	for i, raw := range raws {
		p, err := one(raw)
		if err != nil {
			return fmt.Errorf("message part %d: %w", i, err)
		}
		out[i] = p
	}
	*ps = out
	return nil
}

func marshalPart(p Part) ([]byte, error) {
	var kind string
	switch p := p.(type) {
	case Text:
		kind = "text"
	case Image:
		kind = "image"
	case ToolCall:
		kind = "tool_call"
	case ToolResult:
		kind = "tool_result"
		for _, c := range p.Content {
			if _, ok := c.(ToolResult); ok {
				return nil, fmt.Errorf("the result of tool call %q contains another tool result", p.CallID)
			}
		}
	case Reasoning:
		kind = "reasoning"
	case ToolReference:
		kind = "tool_reference"
	case Opaque:
		kind = "opaque"
	case Unknown:
		if _, err := kindOf(p.Raw); err != nil { // it could be written, but not read again
			return nil, fmt.Errorf("part of unknown kind %q: %w", p.Kind, err)
		}
		return p.Raw, nil
	default:
		return nil, fmt.Errorf("unknown part type %T", p)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("part %q: %w", kind, err)
	}
	buf := make([]byte, 0, len(body)+len(kind)+10)
	buf = append(buf, `{"type":"`...)
	buf = append(buf, kind...)
	buf = append(buf, '"')
	if len(body) > 2 {
		buf = append(buf, ',')
	}
	return append(buf, body[1:]...), nil
}

// kindOf returns the "type" of a part in JSON.
func kindOf(raw json.RawMessage) (string, error) {
	if kind, ok := quickKind(raw); ok {
		return kind, nil
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return "", err
	}
	if head.Type == "" {
		return "", errors.New(`missing "type"`)
	}
	return head.Type, nil
}

// quickKind is kindOf for the form that marshalPart writes. It reads no further:
// the caller decodes the rest anyway.
func quickKind(raw json.RawMessage) (string, bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	if !ok {
		return "", false
	}
	for _, kind := range [...]string{"text", "tool_call", "tool_result", "reasoning", "image", "tool_reference", "opaque"} {
		if len(rest) > len(kind) && rest[len(kind)] == '"' && string(rest[:len(kind)]) == kind {
			return kind, true
		}
	}
	return "", false
}

func unmarshalPart(raw json.RawMessage) (Part, error) {
	kind, err := kindOf(raw)
	if err != nil {
		return nil, err
	}
	if kind != "tool_result" {
		return unmarshalContent(raw)
	}
	var r struct {
		ToolResult
		Content content `json:"content"` // replaces that of ToolResult
	}
	err = json.Unmarshal(raw, &r)
	r.ToolResult.Content = Parts(r.Content)
	return r.ToolResult, err
}

// content is the content of a tool result, in which a tool result is an unknown
// kind. Hostile input could otherwise nest them, and each level would be scanned
// again for all levels around it.
type content Parts

func (c *content) UnmarshalJSON(data []byte) error {
	return (*Parts)(c).unmarshal(data, unmarshalContent)
}

func unmarshalContent(raw json.RawMessage) (Part, error) {
	kind, err := kindOf(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "text":
		return decodePart[Text](raw)
	case "image":
		return decodePart[Image](raw)
	case "tool_call":
		return decodePart[ToolCall](raw)
	case "reasoning":
		return decodePart[Reasoning](raw)
	case "tool_reference":
		return decodePart[ToolReference](raw)
	case "opaque":
		return decodePart[Opaque](raw)
	}
	return Unknown{Kind: kind, Raw: bytes.Clone(raw)}, nil
}

func decodePart[P Part](raw []byte) (Part, error) {
	var p P
	err := json.Unmarshal(raw, &p)
	return p, err
}
