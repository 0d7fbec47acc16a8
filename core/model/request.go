package model

import "encoding/json"

// Role is the author of a message. The system prompt is not a message but
// [Request.System].
type Role string

// The roles of a conversation.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // has only ToolResults as parts
)

// Message is one message of the conversation sent to a provider.
type Message struct {
	Role  Role  `json:"role"`
	Parts Parts `json:"parts"`
}

// ToolDef describes one tool to the model.
type ToolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema, its root an object
	// Deferred tools are left out of the prompt until a ToolReference names
	// them, if the provider supports that.
	Deferred bool `json:"deferred,omitempty"`
	// Late tools are Deferred ones that came after the first request. A provider
	// that lists deferred tools before the conversation leaves them out, to keep
	// its beginning.
	Late bool `json:"late,omitempty"`
}

// Effort is how much a reasoning model should think. Empty means the
// provider's default.
type Effort string

// The efforts. A provider maps each to the nearest that it supports.
const (
	EffortNone   Effort = "none"
	EffortLow    Effort = "low"
	EffortMedium Effort = "medium"
	EffortHigh   Effort = "high"
	EffortXHigh  Effort = "xhigh"
)

// ToolChoice is "auto" (also when empty), "none", "required", or a tool's name.
type ToolChoice string

// The tool choices that are not a tool's name.
const (
	ToolChoiceAuto     ToolChoice = "auto"
	ToolChoiceNone     ToolChoice = "none"
	ToolChoiceRequired ToolChoice = "required"
)

// Request is one model call. A provider must not change it or anything it
// points to: its slices are shared with the session.
type Request struct {
	Model        string
	System       string
	Messages     []Message
	Tools        []ToolDef
	ToolChoice   ToolChoice
	Effort       Effort
	MaxTokens    int             // of the response; 0 means the provider's default
	Temperature  *float64        // nil means the provider's default
	OutputSchema json.RawMessage // JSON Schema of the answer's text
	// ProviderOptions are passed to the provider of that name: beta headers,
	// safety settings, grounding.
	ProviderOptions map[string]json.RawMessage
}

// Usage counts the tokens of one or more calls. Input includes CachedInput
// and CacheWrite; Output includes Reasoning.
type Usage struct {
	Input       int `json:"input"`
	CachedInput int `json:"cachedInput,omitempty"`
	CacheWrite  int `json:"cacheWrite,omitempty"`
	Output      int `json:"output"`
	Reasoning   int `json:"reasoning,omitempty"`
}

// Total is Input + Output.
func (u Usage) Total() int { return u.Input + u.Output }

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, CachedInput: u.CachedInput + v.CachedInput,
		CacheWrite: u.CacheWrite + v.CacheWrite, Output: u.Output + v.Output,
		Reasoning: u.Reasoning + v.Reasoning,
	}
}

// StopReason is why a response ended.
type StopReason string

// The stop reasons, to which each provider's own are mapped.
const (
	StopEnd           StopReason = "end"            // the model is done
	StopToolCalls     StopReason = "tool_calls"     // the model waits for tool results
	StopMaxTokens     StopReason = "max_tokens"     // cut off: its tool calls must not run
	StopContentFilter StopReason = "content_filter" // cut off by the provider's filter
	StopRefusal       StopReason = "refusal"        // the model declined
	StopOther         StopReason = "other"
)
