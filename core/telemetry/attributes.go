package telemetry

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

func seconds(ms int64) float64 { return (time.Duration(ms) * time.Millisecond).Seconds() }

// providerName returns the name that the conventions have for a provider.
func providerName(name string) string {
	switch name {
	case "gemini":
		return "gcp.gemini"
	case "vertex":
		return "gcp.vertex_ai"
	case "azure":
		return "azure.ai.openai"
	case "foundry":
		return "azure.ai.inference"
	case "bedrock":
		return "aws.bedrock"
	case "mistral":
		return "mistral_ai"
	}
	return name
}

// finishReason returns the conventions' name for a stop reason.
func finishReason(s model.StopReason) string {
	switch s {
	case model.StopEnd:
		return "stop"
	case model.StopToolCalls:
		return "tool_call"
	case model.StopMaxTokens:
		return "length"
	}
	return string(s)
}

// server sets the address of a server from its base URL.
func (s *Span) server(base string) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return
	}
	s.set("server.address", u.Hostname())
	port := map[string]int{"http": 80, "https": 443}[u.Scheme]
	if n, err := strconv.Atoi(u.Port()); err == nil {
		port = n
	}
	if port > 0 {
		s.set("server.port", port)
	}
}

// content adds what an event says, as it is recorded, to a span.
func (s *session) content(span *Span, key string, e event.Event) {
	if !s.b.Content || span == nil || e.Body == nil {
		return
	}
	text := ""
	switch body := e.Recorded().(type) {
	case event.User:
		text = toJSON([]message{{Role: "user", Parts: contentParts(body.Content)}})
	case event.Message:
		text = toJSON([]message{{Role: "assistant", Parts: contentParts(body.Content), Finish: finishReason(body.Stop)}})
		if s.run != nil && body.Content.Text() != "" {
			s.run.Content = replace(s.run.Content, key, text)
		}
	case event.Prompt:
		text = toJSON([]part{{Type: "text", Content: body.Text}})
	case event.ToolUse:
		text = body.Args
	case event.ToolResult:
		text = body.Content.Text()
	}
	span.Content = replace(span.Content, key, text)
}

func replace(list []Attr, key, text string) []Attr {
	for i := range list {
		if list[i].Key == key {
			list[i].Value = text
			return list
		}
	}
	return append(list, Attr{key, text})
}

// message and part are the conventions' JSON form of a message.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

func contentParts(parts model.Parts) (list []part) {
	for _, p := range parts {
		switch p := p.(type) {
		case model.Text:
			list = append(list, part{Type: "text", Content: p.Text})
		case model.Reasoning:
			list = append(list, part{Type: "reasoning", Content: p.Text})
		case model.ToolCall:
			list = append(list, part{Type: "tool_call", ID: p.ID, Name: p.Name, Arguments: p.Args})
		}
	}
	return list
}

func toJSON(v any) string {
	text, _ := json.Marshal(v) // texts and lists always have JSON
	return string(text)
}
