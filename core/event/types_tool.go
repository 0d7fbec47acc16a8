package event

import (
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// ToolUse begins a tool call; the envelope's Call holds its id.
type ToolUse struct {
	Name   string `json:"name"`
	Source string `json:"source,omitempty"` // where the tool comes from: "builtin", a plugin's or a server's name
	Args   string `json:"args"`             // as sent by the model
}

// ToolOutputDelta is a part of a tool's live output.
type ToolOutputDelta struct {
	Text string `json:"text"`
}

// ToolProgress says how far a tool call has come. Total 0 means unknown.
type ToolProgress struct {
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// ToolResult ends a tool call.
type ToolResult struct {
	Name       string                     `json:"name"`
	Content    model.Parts                `json:"content"` // what the model gets
	IsError    bool                       `json:"isError,omitempty"`
	Code       string                     `json:"code,omitempty"` // core.ErrorCode of a failure
	Output     *Output                    `json:"output,omitempty"`
	DurationMS int64                      `json:"durationMs"`
	WaitedMS   int64                      `json:"waitedMs,omitempty"` // for the user
	Bytes      int64                      `json:"bytes,omitempty"`    // of a content that is not recorded
	Structured json.RawMessage            `json:"structured,omitempty"`
	Meta       map[string]json.RawMessage `json:"meta,omitempty"`
}

// metaSandbox is the key of Meta for [ToolResult.Sandbox].
const metaSandbox = "sandbox"

// SandboxMeta is the Meta of a call that ran a program; see [ToolResult.Sandbox].
func SandboxMeta(level string) map[string]json.RawMessage {
	if level == "" {
		return nil
	}
	text, _ := json.Marshal(level) // a string has JSON
	return map[string]json.RawMessage{metaSandbox: text}
}

// Sandbox returns the sandbox level at which the call's program ran, "none"
// without a sandbox, and "" if it ran no program or it is unknown.
func (b *ToolResult) Sandbox() (level string) {
	if json.Unmarshal(b.Meta[metaSandbox], &level) != nil {
		return ""
	}
	return level
}

// Output is the full text of a tool's result, if the model got less.
type Output struct {
	Text string `json:"text,omitempty"` // up to 64 KiB, 1 MiB without a store
	// Handle names a longer one in the store, and Path its file, if there is one.
	Handle string `json:"handle,omitempty"`
	Path   string `json:"path,omitempty"`
	Bytes  int64  `json:"bytes"`
}

// Open returns a reader over the full text. The caller closes it.
func (o *Output) Open() (io.ReadCloser, error) {
	if o.Path != "" {
		return os.Open(o.Path)
	}
	return io.NopCloser(strings.NewReader(o.Text)), nil
}
