package modeltest

import (
	"encoding/json"

	"github.com/seed-009c0928/agent/core/model"
)

// Parsed is the content of a request, in a form that is the same for every API.
type Parsed struct {
	Model  string
	System string // its parts, separated by line breaks
	// Messages have results in separate messages of RoleTool, before other content
	// that came with them. Call ids are those on the wire, or "#1", "#2" … if the
	// API has none. Images have their data. A Reasoning is one that is sent back to
	// the service, an Opaque is state of the service: the signature, the encrypted
	// content or the redacted data as a JSON string.
	Messages []model.Message
	Tools    []model.ToolDef
	// ToolChoice is empty if the request has none.
	ToolChoice model.ToolChoice
	// Effort is the API's name of it, or a budget of tokens; empty if the request
	// has none.
	Effort       string
	MaxTokens    int
	Temperature  *float64
	OutputSchema json.RawMessage
}

// opaque returns state of the service as a part.
func opaque(state string) model.Opaque {
	return model.Opaque{Raw: json.RawMessage(text(state))}
}

// add adds parts to the last message if it has that role, otherwise to a new one.
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

// Images returns all images, including those of results.
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
