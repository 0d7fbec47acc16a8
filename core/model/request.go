package model

import "encoding/json"

// Role says who speaks in a message. The system prompt is not a message: it
// is [Request.System].
type Role string

// The roles of a conversation.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // its parts are ToolResults only
)

// Message is one entry of the conversation that goes to a provider.
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
	// them, where the provider can do that.
	Deferred bool `json:"deferred,omitempty"`
}

// Effort is how much a reasoning model should think. Empty means the
// provider's default.
type Effort string

// The efforts. A provider maps each to the nearest that it offers.
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

// Request is one call of a model. A provider must not change it or anything
// that it points to: its slices are shared with the session.
type Request struct {
	Model        string
	System       string
	Messages     []Message
	Tools        []ToolDef
	ToolChoice   ToolChoice
	Effort       Effort
	MaxTokens    int             // of the response; 0 leaves it to the provider
	Temperature  *float64        // nil leaves it to the provider
	OutputSchema json.RawMessage // JSON Schema that the answer's text must meet
	// ProviderOptions are passed on under the provider's name: beta headers,
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

// StopReason says why a response ended.
type StopReason string

// The stop reasons, whatever the provider calls them.
const (
	StopEnd           StopReason = "end"            // the model is done
	StopToolCalls     StopReason = "tool_calls"     // it waits for tool results
	StopMaxTokens     StopReason = "max_tokens"     // cut: its tool calls must not run
	StopContentFilter StopReason = "content_filter" // cut by the provider's filter
	StopRefusal       StopReason = "refusal"        // the model declined
	StopOther         StopReason = "other"
)
