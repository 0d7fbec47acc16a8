package modeltest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Request is a request for an answer as the server received it.
type Request struct {
	Header http.Header     `json:"-"`
	URL    *url.URL        `json:"-"`
	Body   json.RawMessage `json:"-"`
	Parsed Parsed          `json:"-"` // empty if the request was rejected

	Model  string `json:"model"`
	Stream bool   `json:"stream"`

	encrypted bool // encrypted reasoning was requested
	searches  bool // the model may search for tools

	// The fields below are for chat completions only.
	Messages            []Message       `json:"messages"`
	Tools               []Tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Temperature         *float64        `json:"temperature"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	StreamOptions       *StreamOptions  `json:"stream_options"`
}

// StreamOptions are those of a chat completion.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
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

// Text returns the texts of the message's content, separated by line breaks.
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
	_ = json.Unmarshal(m.Content, &parts) // other content has been rejected
	return parts
}

// The patterns are compiled when first needed.
var (
	toolName       = lazy.Regexp(`^[a-zA-Z0-9_-]{1,64}$`)
	reasoningModel = lazy.Regexp(`^(o[1-9]|gpt-5)`)
	imageURL       = lazy.Regexp(`^(https?://|data:image/[a-z+.-]+;base64,[A-Za-z0-9+/]+=*$)`)
)
