package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Request is a chat completion request as the server received it.
type Request struct {
	Header http.Header     `json:"-"`
	Body   json.RawMessage `json:"-"`

	Model               string          `json:"model"`
	Messages            []Message       `json:"messages"`
	Tools               []Tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Temperature         *float64        `json:"temperature"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	Stream              bool            `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Message is one message of a request.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"` // a string, an array of parts or null
	ToolCalls  []ToolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// ToolCall is a call that an assistant message of a request carries.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Tool is a tool definition of a request.
type Tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// Text returns the texts of the message's content, a line break between two.
func (m *Message) Text() string {
	var texts []string
	for _, p := range m.parts() {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Images returns the URLs of the message's images.
func (m *Message) Images() []string {
	var urls []string
	for _, p := range m.parts() {
		if p.ImageURL != nil {
			urls = append(urls, p.ImageURL.URL)
		}
	}
	return urls
}

func (m *Message) parts() []contentPart {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []contentPart{{Type: "text", Text: text}}
	}
	var parts []contentPart
	_ = json.Unmarshal(m.Content, &parts) // content that is neither has been refused
	return parts
}

// refusal is why the service would not accept a request.
type refusal struct{ code, message string }

func refuse(code, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

var (
	toolName       = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	reasoningModel = regexp.MustCompile(`^(o[1-9]|gpt-5)`)
	dataURL        = regexp.MustCompile(`^(https?://|data:image/[a-z+.-]+;base64,[A-Za-z0-9+/]+=*$)`)
)

// check finds what the service would refuse in the request.
func (r *Request) check() *refusal {
	switch {
	case r.Model == "":
		return refuse("", "you must provide a model parameter")
	case len(r.Messages) == 0:
		return refuse("empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case r.StreamOptions != nil && !r.Stream:
		return refuse("", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.Temperature != nil && *r.Temperature != 1 && reasoningModel.MatchString(r.Model):
		return refuse("unsupported_value", "Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", *r.Temperature)
	case r.MaxTokens > 0 && reasoningModel.MatchString(r.Model):
		return refuse("unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case r.ToolChoice != nil && len(r.Tools) == 0:
		return refuse("", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	for i, t := range r.Tools {
		var params map[string]json.RawMessage
		if t.Type != "function" || !toolName.MatchString(t.Function.Name) || json.Unmarshal(t.Function.Parameters, &params) != nil {
			return refuse("invalid_function_parameters", "Invalid 'tools[%d]': a function with a name and an object as parameters was expected.", i)
		}
	}
	return r.checkMessages()
}

// checkMessages checks the roles and contents, and that every tool call is
// answered by the tool messages that follow it.
func (r *Request) checkMessages() *refusal {
	open := map[string]bool{}
	for i, m := range r.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return refuse("", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (messages[%d])", i)
		}
		switch m.Role {
		case "system", "developer", "user":
		case "assistant":
			if string(m.Content) == "null" && len(m.ToolCalls) == 0 {
				return refuse("", "Invalid value for 'content': expected a string, got null. (messages[%d])", i)
			}
			for _, c := range m.ToolCalls {
				if c.ID == "" || c.Type != "function" || len(c.ID) > 40 {
					return refuse("", "Invalid 'messages[%d].tool_calls': id (at most 40 characters) and type 'function' are required.", i)
				}
				open[c.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] {
				return refuse("", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (messages[%d])", i)
			}
			delete(open, m.ToolCallID)
		default:
			return refuse("invalid_value", "Invalid value: '%s'. (messages[%d].role)", m.Role, i)
		}
		if bad := m.checkContent(i); bad != nil {
			return bad
		}
	}
	if len(open) > 0 {
		return refuse("", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

func (m *Message) checkContent(i int) *refusal {
	var text *string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &text) == nil {
		return nil
	}
	var parts []contentPart
	if json.Unmarshal(m.Content, &parts) != nil {
		return refuse("invalid_type", "Invalid type for 'messages[%d].content'.", i)
	}
	for j, p := range parts {
		switch {
		case p.Type == "text":
		case p.Type == "image_url" && m.Role == "user" && p.ImageURL != nil && dataURL.MatchString(p.ImageURL.URL):
		default:
			return refuse("invalid_value", "Invalid value: '%s'. (messages[%d].content[%d])", p.Type, i, j)
		}
	}
	return nil
}
