package event

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/seed-009c0928/agent/core/model"
)

// SessionStart begins a session, or resumes it.
type SessionStart struct {
	Agent    string `json:"agent,omitempty"` // version of the host program
	Cwd      string `json:"cwd"`
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Profile  string `json:"profile,omitempty"`
	Resumed  bool   `json:"resumed,omitempty"`
	// Path is the names of the subagents from the root session to this one.
	Path []string `json:"path,omitempty"`
}

// SessionEnd closes a session.
type SessionEnd struct {
	Reason     string      `json:"reason"`
	Usage      model.Usage `json:"usage"`
	DurationMS int64       `json:"durationMs,omitempty"` // since it was opened or resumed
}

// Prompt is the system prompt used from here on.
type Prompt struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Profile  string `json:"profile,omitempty"`
	Text     string `json:"text"`
}

// User is an input, with what the context sources added to it.
type User struct {
	Content model.Parts `json:"content"`
	Run     string      `json:"run,omitempty"`   // the host's name for the input
	Input   string      `json:"input,omitempty"` // its ID: an input is taken once
}

// Idle says that the session waits for the next input.
type Idle struct {
	State string `json:"state"` // "idle", "awaiting_input", "parked" or "unfinished"
	Stop  string `json:"stop"`  // why the input's processing ended, see core.StopReason
}

// MessageStart says that the answer of the model begins.
type MessageStart struct {
	Model string `json:"model,omitempty"`
}

// MessageDelta is a part of the answer's text.
type MessageDelta struct {
	Text string `json:"text"`
}

// ReasoningDelta is a part of the reasoning that the provider shows.
type ReasoningDelta struct {
	Text string `json:"text"`
}

// Message is the model's complete answer.
type Message struct {
	Content    model.Parts      `json:"content"`
	Usage      model.Usage      `json:"usage"`
	Stop       model.StopReason `json:"stop"`
	ResponseID string           `json:"responseId,omitempty"`
	Provider   string           `json:"provider,omitempty"`
	Model      string           `json:"model,omitempty"`
	Partial    bool             `json:"partial,omitempty"` // the stream failed or was cancelled
}

// Steering is a message added between two model calls.
type Steering struct {
	Content model.Parts `json:"content"`
	Source  string      `json:"source"`           // "user", "system" (the host), "loop_detection" or "output_schema"
	Queued  Seq         `json:"queued,omitempty"` // seq of the queued event, if it waited
}

// Queued is a message that waits for the current step to end, or for the next input: then
// a steering event adds it, also in a resumed session. With a run it is an input that waits
// for its turn, until a user event or a result has that run.
type Queued struct {
	Content model.Parts `json:"content"`
	Source  string      `json:"source"` // "user" or "system" (the host)
	Run     string      `json:"run,omitempty"`
}

// TurnLimit says that a limit on turns or tool rounds ended the processing.
type TurnLimit struct {
	Limit string `json:"limit"` // the setting's name
	Max   int    `json:"max"`
}

// TokenLimit says that a limit on tokens or cost ended the processing.
type TokenLimit struct {
	Limit string  `json:"limit"` // the setting's name
	Max   float64 `json:"max"`
	Used  float64 `json:"used"`
}

// LoopDetection says that the last calls follow a repeating pattern.
type LoopDetection struct {
	Message string `json:"message"`
	Pattern int    `json:"pattern"` // its length in calls
}

// LLMStart says that a request is sent.
type LLMStart struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Server   string `json:"server,omitempty"`  // base URL, without secrets
	Purpose  string `json:"purpose,omitempty"` // "compaction", "plugin NAME", "MCP server"; empty = the answer
	Messages int    `json:"messages"`
	Tools    int    `json:"tools"`
	// The time limits of each attempt; 0 is none or unknown.
	FirstByteMS int64 `json:"firstByteTimeoutMs,omitempty"`
	IdleMS      int64 `json:"idleTimeoutMs,omitempty"`
	TotalMS     int64 `json:"totalTimeoutMs,omitempty"`
}

// LLMEnd says that a response is complete, or failed.
type LLMEnd struct {
	Provider  string           `json:"provider"`
	Model     string           `json:"model"`
	Usage     model.Usage      `json:"usage"`
	Stop      model.StopReason `json:"stop,omitempty"`
	LatencyMS int64            `json:"latencyMs"`
	FirstMS   int64            `json:"firstMs"` // to the first delta
	Error     string           `json:"error,omitempty"`
	Code      model.ErrorCode  `json:"code,omitempty"` // of the error
}

// LLMRetry says that a request failed and is repeated.
type LLMRetry struct {
	Attempt int             `json:"attempt"`
	Max     int             `json:"max"` // 0 if a fallback takes over
	WaitMS  int64           `json:"waitMs"`
	Code    model.ErrorCode `json:"code"`
	Message string          `json:"message"`
	// Discard says that the deltas since llm_start are void: the answer broke off
	// and begins again.
	Discard  bool   `json:"discard,omitempty"`
	Provider string `json:"provider,omitempty"` // the fallback that takes over
	Model    string `json:"model,omitempty"`    // its model
}

// Question is put to the user. The envelope's Call holds the call that it is about; a
// question of a subagent, or of a running tool, has none.
type Question struct {
	QID       string          `json:"qid"`
	Kind      string          `json:"kind"`
	AgentPath []string        `json:"agentPath,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Accesses  []Access        `json:"accesses,omitempty"` // what the call would do
	Title     string          `json:"title"`
	Detail    string          `json:"detail,omitempty"`
	Choices   []string        `json:"choices,omitempty"`
	Offers    []Offer         `json:"offers,omitempty"`
	Edits     []Edit          `json:"edits,omitempty"` // what a call that changes files would change
	Schema    json.RawMessage `json:"schema,omitempty"`
	URL       string          `json:"url,omitempty"`
}

// Offer is a choice of allow rules that an answer can add.
type Offer struct {
	Rules []string `json:"rules"`
	// Confirm says what is broad about the rules, such as "reading everything in
	// /etc": the user must confirm them. Empty if nothing is.
	Confirm string `json:"confirm,omitempty"`
}

// Answer ends a Question.
type Answer struct {
	QID    string   `json:"qid"`
	Choice string   `json:"choice,omitempty"`
	Rules  []string `json:"rules,omitempty"` // of the offer that was accepted
	Reason string   `json:"reason,omitempty"`
	Args   string   `json:"args,omitempty"` // with which the user replaced those of the call
	// Values are those of a form.
	Values    json.RawMessage `json:"values,omitempty"`
	Withdrawn bool            `json:"withdrawn,omitempty"` // cancelled without an answer
}

// Access is one thing that a tool call would do.
type Access struct {
	Scope     string   `json:"scope"`
	Resource  string   `json:"resource"`
	Recursive bool     `json:"recursive,omitempty"` // with everything below
	Argv      []string `json:"argv,omitempty"`
	// Unconfined says that a command was to run outside the sandbox.
	Unconfined bool `json:"unconfined,omitempty"`
}

// Permission records a decision on a tool call.
type Permission struct {
	Tool     string   `json:"tool"`
	Decision string   `json:"decision"` // allow, deny
	Decider  string   `json:"decider"`  // policy, person, headless, hook
	Rule     string   `json:"rule,omitempty"`
	Source   string   `json:"source,omitempty"` // where the rule is
	Reason   string   `json:"reason,omitempty"`
	Choice   string   `json:"choice,omitempty"` // of the user: once, session, always, deny
	Rules    []string `json:"rules,omitempty"`  // allow rules that the choice added
	Accesses []Access `json:"accesses,omitempty"`
}

// SkillActivated says that a skill's text was added to the turn that follows.
type SkillActivated struct {
	Name    string `json:"name"`
	Scope   string `json:"scope"`             // project, user, bundled
	By      string `json:"by"`                // name, phrase, pattern, keyword+verb, text
	Trigger string `json:"trigger,omitempty"` // the words of the input that matched
	File    string `json:"file,omitempty"`
	Size    int    `json:"size"` // of the text, in estimated tokens
}

// SkillsListed says that skills were listed to the model, to choose from.
type SkillsListed struct {
	Names []string `json:"names"`
	Left  int      `json:"left,omitempty"` // number of skills not listed
}

// Compacted says that a summary replaces all but the last messages of the
// conversation.
type Compacted struct {
	Content    model.Parts `json:"content"`    // the summary, as the model gets it
	Summarised int         `json:"summarised"` // messages that it replaces
	Kept       int         `json:"kept"`       // messages after it that were kept
	Before     int         `json:"before"`     // estimated tokens of the conversation
	After      int         `json:"after"`
	Provider   string      `json:"provider,omitempty"`
	Model      string      `json:"model,omitempty"`
	Usage      model.Usage `json:"usage"` // of the call for the summary
}

// Rewound says that the conversation is again as it was before an input. The log
// keeps that input and what came after it.
type Rewound struct {
	Input Seq `json:"input"` // the number of the user event
}

// SourceStarted says that a plugin or an MCP server was started, or could not be.
type SourceStarted struct {
	Kind       string `json:"kind"` // plugin, mcp
	Name       string `json:"name"`
	DurationMS int64  `json:"durationMs"`
	Error      string `json:"error,omitempty"`
}

// SubagentStart says that a subagent starts to work on an input.
type SubagentStart struct {
	Name  string   `json:"name"`           // the last part of its path
	Path  []string `json:"path"`           // of names, from the root session down
	Child string   `json:"child"`          // its session
	Kind  string   `json:"kind,omitempty"` // agent type, if it has a definition
	Model string   `json:"model,omitempty"`
	Input string   `json:"input"` // the task, or a later message
	// InputID is that of the input in its session; empty if it continues with messages.
	InputID string `json:"inputId,omitempty"`
}

// SubagentEnd says that a subagent has processed its input.
type SubagentEnd struct {
	Name       string      `json:"name"`
	Child      string      `json:"child"`
	Outcome    string      `json:"outcome"`         // a core.StopReason
	Error      string      `json:"error,omitempty"` // why it failed
	Text       string      `json:"text"`            // its report
	Usage      model.Usage `json:"usage"`
	CostUSD    *float64    `json:"costUsd,omitempty"`
	DurationMS int64       `json:"durationMs"`
}

// FilesChanged says what changed in a directory of the workspace while a tool call
// ran, or by an undo.
type FilesChanged struct {
	Root string `json:"root"`
	// Before and After are snapshots (core/snapshot), with which the changes can
	// be taken back.
	Before string       `json:"before"`
	After  string       `json:"after"`
	Files  []FileChange `json:"files"`
	Left   int          `json:"left,omitempty"`   // number of files not listed
	Agent  []string     `json:"agent,omitempty"`  // path of the subagent that made the call
	Source string       `json:"source,omitempty"` // undo, redo or restore; empty = a call
	Undoes []Seq        `json:"undoes,omitempty"` // the events that an undo takes back
	// Unrecorded changed as well, and is not in the snapshots.
	Unrecorded []Unrecorded `json:"unrecorded,omitempty"`
}

// Unrecorded is a file that snapshots do not hold.
type Unrecorded struct {
	Path   string `json:"path"` // as in FileChange
	Reason string `json:"reason"`
}

// FileChange is the change of one file.
type FileChange struct {
	Path    string `json:"path"`           // relative to the root, with slashes
	From    string `json:"from,omitempty"` // former path
	Kind    string `json:"kind"`           // create, modify, delete, rename
	Dir     bool   `json:"dir,omitempty"`
	Mode    string `json:"mode,omitempty"` // new permissions, octal, if they changed
	Binary  bool   `json:"binary,omitempty"`
	Added   int    `json:"added,omitempty"` // lines
	Removed int    `json:"removed,omitempty"`
	Diff    string `json:"diff,omitempty"` // in the unified format; empty if it is long
	// Symbols are the innermost definitions that were touched, in languages that
	// are analysed; at most 200 in an event.
	Symbols []SymbolChange `json:"symbols,omitempty"`
}

// SymbolChange is the change of a definition in a file.
type SymbolChange struct {
	Name   string `json:"name"`   // in the file: Session.Run
	Kind   string `json:"kind"`   // function, method, class, interface, variable, test
	Change string `json:"change"` // create, modify, delete
}

// Hook says what a configured hook came to.
type Hook struct {
	Event  string `json:"event"`
	Name   string `json:"name"`   // its name, command, address or tool
	Source string `json:"source"` // where it is configured
	Kind   string `json:"kind"`   // command, http, mcp_tool, plugin, prompt
	Tool   string `json:"tool,omitempty"`
	CallID string `json:"callId,omitempty"`
	// Decision is allow, ask, deny, block or stop; it may be empty.
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Changed  bool   `json:"changed,omitempty"` // it changed the arguments or the result
	Context  string `json:"context,omitempty"` // its text for the model
	// Variables are the names of those that it set for the commands of the session.
	Variables  []string `json:"variables,omitempty"`
	ExitCode   *int     `json:"exitCode,omitempty"`
	Error      string   `json:"error,omitempty"` // why it failed
	DurationMS int64    `json:"durationMs"`
}

// Cancelled says that processing was cancelled.
type Cancelled struct {
	Reason string `json:"reason"`
	Abort  bool   `json:"abort,omitempty"` // by the end of its context, or as the session closes
}

// Warning is a problem that does not stop the work.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error is a problem that ended the processing of the input.
type Error struct {
	Code         string `json:"code"`
	Message      string `json:"message"`
	Retryable    bool   `json:"retryable"`
	RetryAfterMS int64  `json:"retryAfterMs,omitempty"` // how long the provider asks to wait
}

// ErrorOf describes an error, such as that of a model.
func ErrorOf(err error) Error {
	e := model.AsError(err)
	return Error{Code: string(e.Code), Message: err.Error(), Retryable: e.Retryable(), RetryAfterMS: e.RetryAfter.Milliseconds()}
}

// Init is the first event of `agent exec`.
type Init struct {
	Agent    string   `json:"agent"`
	Cwd      string   `json:"cwd"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Profile  string   `json:"profile,omitempty"`
	Mode     string   `json:"permissionMode"`
	Tools    []string `json:"tools"`
	Log      string   `json:"log,omitempty"` // the session's file
	Scripted bool     `json:"scripted,omitempty"`
	Protocol int      `json:"protocol,omitempty"` // version of the host protocol, with --input-format stream-json
}

// Result ends a run: the last event of `agent exec`, or what came of an input of a host.
type Result struct {
	Run        string       `json:"run,omitempty"` // the host's name for the input
	Outcome    string       `json:"outcome"`       // a core.StopReason
	ExitCode   int          `json:"exitCode"`
	Text       string       `json:"text"`
	Rounds     int          `json:"rounds"`
	DurationMS int64        `json:"durationMs"`
	Usage      model.Usage  `json:"usage"`
	CostUSD    *float64     `json:"costUsd,omitempty"`
	Denied     []Permission `json:"denied"`
	Questions  []Question   `json:"questions,omitempty"` // that the session waits for
	Error      *Error       `json:"error,omitempty"`
}

// SettingChanged says that a driver changed a setting of the session.
type SettingChanged struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
}

// Host is an event of the host's own, see core.Session.Note. The name begins with a domain or path of the
// host, such as "example.com/ticket".
type Host struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Unknown holds an event of an unknown type.
type Unknown struct {
	Kind string
	Raw  json.RawMessage
}

func (SessionStart) Type() string    { return "session_start" }
func (SessionEnd) Type() string      { return "session_end" }
func (Prompt) Type() string          { return "prompt" }
func (User) Type() string            { return "user" }
func (Idle) Type() string            { return "idle" }
func (MessageStart) Type() string    { return "message_start" }
func (MessageDelta) Type() string    { return "message_delta" }
func (ReasoningDelta) Type() string  { return "reasoning_delta" }
func (Message) Type() string         { return "message" }
func (ToolUse) Type() string         { return "tool_use" }
func (ToolOutputDelta) Type() string { return "tool_output_delta" }
func (ToolProgress) Type() string    { return "tool_progress" }
func (ToolResult) Type() string      { return "tool_result" }
func (Steering) Type() string        { return "steering" }
func (Queued) Type() string          { return "queued" }
func (TurnLimit) Type() string       { return "turn_limit" }
func (TokenLimit) Type() string      { return "token_limit" }
func (LoopDetection) Type() string   { return "loop_detection" }
func (LLMStart) Type() string        { return "llm_start" }
func (LLMEnd) Type() string          { return "llm_end" }
func (LLMRetry) Type() string        { return "llm_retry" }
func (Question) Type() string        { return "question" }
func (Answer) Type() string          { return "answer" }
func (Permission) Type() string      { return "permission" }
func (SkillsListed) Type() string    { return "skills_listed" }
func (Compacted) Type() string       { return "compacted" }
func (Rewound) Type() string         { return "rewound" }
func (SourceStarted) Type() string   { return "source_started" }
func (SubagentStart) Type() string   { return "subagent_start" }
func (SubagentEnd) Type() string     { return "subagent_end" }
func (SkillActivated) Type() string  { return "skill_activated" }
func (FilesChanged) Type() string    { return "files_changed" }
func (Hook) Type() string            { return "hook" }
func (Cancelled) Type() string       { return "cancelled" }
func (Warning) Type() string         { return "warning" }
func (Error) Type() string           { return "error" }
func (Init) Type() string            { return "init" }
func (Result) Type() string          { return "result" }
func (SettingChanged) Type() string  { return "setting_changed" }
func (TaskStart) Type() string       { return "task_start" }
func (TaskState) Type() string       { return "task_state" }
func (BeadStart) Type() string       { return "bead_start" }
func (BeadEnd) Type() string         { return "bead_end" }
func (Criterion) Type() string       { return "criterion" }
func (Guard) Type() string           { return "guard" }
func (Budget) Type() string          { return "budget" }
func (Host) Type() string            { return "host" }
func (u Unknown) Type() string       { return u.Kind }

func (SessionStart) body()    {}
func (SessionEnd) body()      {}
func (Prompt) body()          {}
func (User) body()            {}
func (Idle) body()            {}
func (MessageStart) body()    {}
func (MessageDelta) body()    {}
func (ReasoningDelta) body()  {}
func (Message) body()         {}
func (ToolUse) body()         {}
func (ToolOutputDelta) body() {}
func (ToolProgress) body()    {}
func (ToolResult) body()      {}
func (Steering) body()        {}
func (Queued) body()          {}
func (TurnLimit) body()       {}
func (TokenLimit) body()      {}
func (LoopDetection) body()   {}
func (LLMStart) body()        {}
func (LLMEnd) body()          {}
func (LLMRetry) body()        {}
func (Question) body()        {}
func (Answer) body()          {}
func (Permission) body()      {}
func (SkillsListed) body()    {}
func (Compacted) body()       {}
func (Rewound) body()         {}
func (SourceStarted) body()   {}
func (SubagentStart) body()   {}
func (SubagentEnd) body()     {}
func (SkillActivated) body()  {}
func (FilesChanged) body()    {}
func (Hook) body()            {}
func (Cancelled) body()       {}
func (Warning) body()         {}
func (Error) body()           {}
func (Init) body()            {}
func (Result) body()          {}
func (SettingChanged) body()  {}
func (TaskStart) body()       {}
func (TaskState) body()       {}
func (BeadStart) body()       {}
func (BeadEnd) body()         {}
func (Criterion) body()       {}
func (Guard) body()           {}
func (Budget) body()          {}
func (Host) body()            {}
func (Unknown) body()         {}

// bodyType is a type of event: its name, and the decoder of its members.
type bodyType struct {
	kind   string
	decode func(data []byte) (Body, error)
}

// bodyTypes lists every type but Unknown.
var bodyTypes = [...]bodyType{
	typeOf[SessionStart](),
	typeOf[SessionEnd](),
	typeOf[Prompt](),
	typeOf[User](),
	typeOf[Idle](),
	typeOf[MessageStart](),
	typeOf[MessageDelta](),
	typeOf[ReasoningDelta](),
	typeOf[Message](),
	typeOf[ToolUse](),
	typeOf[ToolOutputDelta](),
	typeOf[ToolProgress](),
	typeOf[ToolResult](),
	typeOf[Steering](),
	typeOf[Queued](),
	typeOf[TurnLimit](),
	typeOf[TokenLimit](),
	typeOf[LoopDetection](),
	typeOf[LLMStart](),
	typeOf[LLMEnd](),
	typeOf[LLMRetry](),
	typeOf[Question](),
	typeOf[Answer](),
	typeOf[Permission](),
	typeOf[SkillActivated](),
	typeOf[SkillsListed](),
	typeOf[Compacted](),
	typeOf[Rewound](),
	typeOf[SourceStarted](),
	typeOf[SubagentStart](),
	typeOf[SubagentEnd](),
	typeOf[FilesChanged](),
	typeOf[Hook](),
	typeOf[Cancelled](),
	typeOf[Warning](),
	typeOf[Error](),
	typeOf[Init](),
	typeOf[Result](),
	typeOf[SettingChanged](),
	typeOf[TaskStart](),
	typeOf[TaskState](),
	typeOf[BeadStart](),
	typeOf[BeadEnd](),
	typeOf[Criterion](),
	typeOf[Guard](),
	typeOf[Budget](),
	typeOf[Host](),
}

func typeOf[B Body]() bodyType {
	var zero B
	return bodyType{zero.Type(), func(data []byte) (Body, error) {
		var b B
		err := json.Unmarshal(data, &b)
		return b, err
	}}
}

// decodeBody decodes the members of a body; whole is the complete event.
func decodeBody(kind string, data, whole []byte) (Body, error) {
	for i := range bodyTypes {
		if bodyTypes[i].kind == kind {
			return bodyTypes[i].decode(data)
		}
	}
	if !json.Valid(whole) {
		return nil, errors.New("it is not valid JSON")
	}
	return Unknown{Kind: kind, Raw: bytes.Clone(whole)}, nil
}
