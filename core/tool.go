package core

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/output"
)

// Tool is something that the model can call.
//
// A call goes through these steps:
//
//  1. Definition is read when the tool is listed. It is pure and immutable.
//  2. The arguments are validated against the schema.
//  3. Access returns what the call would touch, before anything is touched. It
//     has no side effects. A tool that cannot tell returns [UnknownAccess],
//     which always needs approval.
//  4. The [Policy] decides, and the user is asked if it says so.
//  5. Run does the work, within call.Env, which allows what was granted and
//     nothing else. It must return soon after ctx is done.
//
// A failure that the model should see is a Result with a Code ([Fail],
// [Failf]); a Go error or a panic becomes UNKNOWN. All methods are called
// concurrently.
type Tool interface {
	Definition() ToolDefinition
	Access(ctx context.Context, call *Call) ([]Access, error)
	Run(ctx context.Context, call *Call) (Result, error)
}

// ToolDefinition describes a tool.
type ToolDefinition struct {
	Name        string          // letters, digits, _ and -; at most 64 of them
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the arguments; its root is an object
	ReadOnly    bool            // changes nothing; calls may run in parallel
	// Repeatable says that the text of a result depends on nothing but what was
	// read: if the conversation has the same one, the model gets a pointer to it.
	Repeatable bool
	Scopes     []Scope       // what its calls may touch, for display; Access decides
	Timeout    time.Duration // of one call, without the time spent waiting for the user; 0 = none
	Output     OutputLimit   // of the text that the model gets
	Profiles   []string      // names of the profiles whose sessions have the tool; empty = all
}

// Call is one call of a tool. It is valid until Run returns.
type Call struct {
	ID      string
	Name    string          // the name that the model used
	Args    json.RawMessage // valid JSON that meets the tool's schema
	Session SessionInfo
	Env     Environment // in Access unrestricted; in Run restricted to what was granted
	// Output takes live output. What is written here begins the result's text:
	// a tool that streams does not return it again.
	Output io.Writer
	// Interrupt is closed when the user wants the call to end soon, with what it
	// has so far. A tool need not heed it.
	Interrupt <-chan struct{}
	// Progress reports how far the call has come.
	Progress func(Progress)
	// Ask puts a question to the user. The call's timeout is paused meanwhile.
	Ask func(ctx context.Context, q Question) (Answer, error)
}

// Progress is how far a call has come. A Total of 0 means unknown.
type Progress struct {
	Done, Total float64
	Message     string
}

// SessionInfo describes the session to tools and policies.
type SessionInfo struct {
	ID                string
	AgentPath         []string // names of the subagents from the root to here; empty for the root
	Dir               string   // the environment's working directory
	CommandTimeout    time.Duration
	MaxCommandTimeout time.Duration
}

// Result is the outcome of a call. A Code makes it a failure.
type Result struct {
	Content    []model.Part
	Structured json.RawMessage // the content as data, for hosts
	Code       ErrorCode
	Meta       map[string]json.RawMessage // for user interfaces, such as a diff; not sent to the model
}

// ErrorCode classifies a tool's failure.
type ErrorCode string

// The error codes of tools.
const (
	CodeValidation  ErrorCode = "VALIDATION_ERROR" // the arguments are wrong
	CodeIO          ErrorCode = "IO_ERROR"
	CodeConfig      ErrorCode = "CONFIG_ERROR"
	CodePermission  ErrorCode = "PERMISSION_DENIED"
	CodeRateLimited ErrorCode = "RATE_LIMITED"
	CodeNotFound    ErrorCode = "NOT_FOUND"
	CodeLLMAssist   ErrorCode = "LLM_ASSIST_REQUIRED"
	CodeTimeout     ErrorCode = "TIMEOUT"
	CodeCancelled   ErrorCode = "CANCELLED"
	CodeUnknown     ErrorCode = "UNKNOWN"
)

// TextResult is a success with a text.
func TextResult(text string) Result {
	return Result{Content: model.TextParts(text)}
}

// Fail is a failure. The message says what is wrong and what to do next.
func Fail(code ErrorCode, message string) Result {
	return Result{Code: code, Content: model.TextParts(message)}
}

// Failf is [Fail] with a format.
func Failf(code ErrorCode, format string, args ...any) Result {
	return Fail(code, fmt.Sprintf(format, args...))
}

// Toolset is a source of tools: the built-in ones, a plugin, an MCP server, a
// skill. It belongs to the host, not to a session, and serves any number of
// sessions at once.
//
//  1. Name is constant.
//  2. Tools returns the current tools. It may be called at any time.
//  3. Changed receives a value after the tools changed (the channel holds one;
//     a nil channel means never) and is closed by Close at the latest.
//  4. Close ends what the toolset runs and waits for it.
type Toolset interface {
	Name() string
	Tools(ctx context.Context) ([]Tool, error)
	Changed() <-chan struct{}
	Close() error
}

// OutputLimit bounds the text of a result that goes to the model, see
// [output.Limit].
type OutputLimit = output.Limit

// The truncation modes, see [output.Mode].
const (
	HeadTail = output.HeadTail
	Tail     = output.Tail
	Head     = output.Head
)
