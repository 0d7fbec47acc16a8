package modeltest

import (
	"encoding/json"

	"github.com/seed-009c0928/agent/core/model"
)

// Parsed is what a request says, in words that are the same for every API.
type Parsed struct {
	Model  string
	System string // the parts of it, a line break between two
	// Messages have results in messages of their own, of RoleTool, before what
	// else came with them. Call ids are those on the wire, or "#1", "#2" … where
	// the API has none. Images have their data. A Reasoning is one that goes back
	// to the service, and an Opaque is state of the service, with the signature,
	// the encrypted content or the redacted data as a JSON string.
	Messages []model.Message
	Tools    []model.ToolDef
	// ToolChoice is empty if the request says nothing of it.
	ToolChoice model.ToolChoice
	// Effort is the API's word for it, or a budget of tokens; empty if the request
	// says nothing of it.
	Effort       string
	MaxTokens    int
	Temperature  *float64
	OutputSchema json.RawMessage
}

// opaque is state of the service in a request.
func opaque(state string) model.Opaque {
	return model.Opaque{Raw: json.RawMessage(text(state))}
}

// say adds a part to the last message, if that is of the role.
func (s *Parsed) add(role model.Role, parts ...model.Part) {
	if n := len(s.Messages); n > 0 && s.Messages[n-1].Role == role {
		s.Messages[n-1].Parts = append(s.Messages[n-1].Parts, parts...)
		return
	}
	s.Messages = append(s.Messages, model.Message{Role: role, Parts: parts})
}

// Parts returns the parts of all messages of a role in order.
func (s *Parsed) Parts(role model.Role) model.Parts {
	var out model.Parts
	for _, m := range s.Messages {
		if m.Role == role {
			out = append(out, m.Parts...)
		}
	}
	return out
}

// Results returns the results of all calls in order.
func (s *Parsed) Results() []model.ToolResult {
	var out []model.ToolResult
	for _, p := range s.Parts(model.RoleTool) {
		if r, ok := p.(model.ToolResult); ok {
			out = append(out, r)
		}
	}
	return out
}

// Images returns all images, those of results too.
func (s *Parsed) Images() []model.Image {
	var out []model.Image
	add := func(parts model.Parts) {
		for _, p := range parts {
			if img, ok := p.(model.Image); ok {
				out = append(out, img)
			}
		}
	}
	for _, m := range s.Messages {
		add(m.Parts)
		for _, p := range m.Parts {
			if r, ok := p.(model.ToolResult); ok {
				add(r.Content)
			}
		}
	}
	return out
}
