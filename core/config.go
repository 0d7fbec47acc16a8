package core

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Config configures a session. Everything non-deterministic is passed in here,
// so that a session can be rebuilt from its Journal alone. Provider, Env and
// Policy are required.
type Config struct {
	ID      string // empty = NewID()
	Version string // of the host program, for the session log
	// Parent and AgentPath are set for the session of a subagent.
	Parent    string
	AgentPath []string

	Provider model.Provider
	Model    string // empty = the provider's
	Profile  Profile
	Request  RequestOptions

	Env Environment
	// ToolEnv is where tools work, if that is not Env itself but a view of it, such as
	// the files as an editor has them; nil = Env.
	ToolEnv Environment
	Tools   ToolTable // nil = none
	Policy  Policy    // decides on every call
	Asker   Asker     // nil = non-interactive: calls that need approval are denied
	// Explain adds to a permission request before it is shown, such as what the call
	// would change; nil adds nothing.
	Explain func(ctx context.Context, e Entry, call *Call, q *Question)
	// SaveRules adds allow rules to the user's settings. With it, permission
	// requests may offer [ChoiceAlways].
	SaveRules func(ctx context.Context, rules []string) error
	// OnOpenCall decides on a call that was open when the process of a resumed session
	// died: RerunCall, CancelCall or AskCall. Nil runs it again if its tool is read-only,
	// and else cancels it.
	OnOpenCall func(OpenCall) OpenCallAction
	Context    []ContextSource // what adds to each input
	Hooks      Hooks
	Watcher    Watcher // learns what calls change; nil = none
	Limits     Limits

	Journal Journal // nil = in memory only
	// JournalOptional lets a session continue in memory when the journal fails.
	JournalOptional bool
	Hider           Hider        // learns what is not recorded; nil = the journal, if it is one
	Store           ContextStore // nil = full outputs are not kept
	// Secrets are replaced by a marker in all output of tools.
	Secrets []string
	// Cost returns the price of a call's usage in USD; nil, or false, if it is
	// unknown. It is called once for every answer, those of a resumed session
	// included.
	Cost func(provider, model string, u model.Usage) (float64, bool)

	Clock  func() time.Time // nil = time.Now
	NewID  func() string    // nil = random
	Logger *slog.Logger     // nil = silent
}

// OpenCall is a call without a result, of a session that is resumed.
type OpenCall struct {
	model.ToolCall
	ReadOnly bool // of its tool; false if that is unknown
	Started  bool // it was permitted, and may have done something
}

// OpenCallAction is what becomes of an [OpenCall].
type OpenCallAction = Verdict

// The actions. A call that runs again needs the policy's permission, like any other.
const (
	CancelCall = Deny  // the model is told that it was interrupted
	AskCall    = Ask   // it runs again if the user agrees
	RerunCall  = Allow // it runs again with the next input
)

// RequestOptions are part of every request. They can change between calls.
type RequestOptions struct {
	Effort          model.Effort
	MaxTokens       int // of one response; 0 leaves it to the provider
	Temperature     *float64
	OutputSchema    json.RawMessage
	ProviderOptions map[string]json.RawMessage
}

// Limits bound a session. Zero means none, unless stated otherwise.
type Limits struct {
	MaxTurns         int     // user and assistant turns over the session
	MaxRounds        int     // rounds of tool calls for one input
	MaxInputTokens   int     // tokens used for one input
	MaxSessionTokens int     // tokens used over the session
	MaxCost          float64 // USD over the session, where prices are known
	WarnAt           float64 // fraction of a limit at which to warn; 0 = 0.8
	CompactAt        float64 // fraction of the context window at which the conversation is compacted; 0 = never

	CommandTimeout    time.Duration // of a command; 0 = 10 s
	MaxCommandTimeout time.Duration // the longest that a call may set; 0 = 600 s
	ParallelCalls     int           // calls at the same time; 0 = 8
	Output            map[string]OutputLimit

	NoLoopDetection bool
	LoopWindow      int // calls looked at; 0 = 10
}

func (l Limits) withDefaults() Limits {
	l.CommandTimeout = cmp.Or(max(l.CommandTimeout, 0), 10*time.Second)
	l.MaxCommandTimeout = cmp.Or(max(l.MaxCommandTimeout, 0), 600*time.Second)
	l.WarnAt = cmp.Or(max(l.WarnAt, 0), 0.8)
	l.ParallelCalls = cmp.Or(max(l.ParallelCalls, 0), 8)
	l.LoopWindow = cmp.Or(max(l.LoopWindow, 0), 10)
	return l
}

// Profile adapts a session to a model: data and a prompt.
type Profile struct {
	Name string
	// Prompt builds the system prompt. It is called once when the session
	// starts and again after a change of model or profile; in between the
	// text stays byte for byte the same. Nil means no prompt.
	Prompt func(ctx context.Context, req PromptRequest) (string, error)
	// Append is the user's own text. It is the last part of the system prompt,
	// after everything that wraps Prompt.
	Append string
	// Sequential runs all tool calls one after the other.
	Sequential bool
	// ContextWindow is the model's, in tokens; 0 = unknown.
	ContextWindow int
	// WindowNote is added to warnings about the window, such as that it is
	// assumed.
	WindowNote string
	// CommandTimeout replaces that of Limits; 0 = does not.
	CommandTimeout time.Duration
	// Asks reports whether an answer ends with a question to the user. Nil
	// means: its last character is a question mark.
	Asks func(text string) bool
}

// PromptRequest is what [Profile].Prompt builds a prompt from.
type PromptRequest struct {
	Provider string
	Model    string
	Env      EnvInfo
	Time     time.Time
	// Environment has the project's instruction files; may be nil.
	Environment Environment
}

// ContextSource adds to an input, such as an activated skill. The failure of a
// source is only a warning; blocks returned with the error are used.
type ContextSource interface {
	Context(ctx context.Context, req ContextRequest) ([]Block, error)
}

// ContextRequest is what a [ContextSource] works with.
type ContextRequest struct {
	Session SessionInfo
	Input   model.Parts
	Budget  int // tokens that the source's blocks should fit into
	// Files are paths that tools were given since the last input, and Errors what
	// failed since then, the newest last.
	Files, Errors []string
	// Sections are tokens for parts of a block by name; nil leaves it to the source.
	Sections map[string]int
}

// Block is a text for the user turn.
type Block struct {
	Source  string // where it comes from
	Trusted bool   // the user's own words or files
	Text    string
	Event   event.Body // logged before the turn, says why the block was added; may be nil
}

// Hooks are a host's functions at three points of the loop. Each may be nil.
type Hooks struct {
	// BeforeModel may change the request (a shallow copy: what it points to is
	// shared and must be replaced, not changed). An error ends the processing.
	BeforeModel func(ctx context.Context, req *model.Request) error
	// BeforeTool may change the arguments or the tool's name, or deny the call
	// with an error. A changed call is checked like any other.
	BeforeTool func(ctx context.Context, call *model.ToolCall) error
	// AfterTool may change the result before it is logged and sent.
	AfterTool func(ctx context.Context, call model.ToolCall, result *Result)
}

// Watcher learns of the calls that may change files, for instance to tell what each
// of them changed. Calls of several sessions may overlap.
type Watcher interface {
	// Begin is called before the calls of an answer, and returns at once.
	Begin(ctx context.Context)
	// Before is called when a call that may change files was permitted and is
	// about to run. The function that it returns is called when the call has
	// ended, and returns the events to log.
	Before(ctx context.Context, call *Call, accesses []Access) (after func(ctx context.Context) []event.Body)
}

// Journal is a session's log. A session appends from one goroutine at a time;
// Replay may run at the same time.
//
// Append returns when the record would survive a crash of this process, Sync
// when it would survive a power failure. Replay yields the records after the
// given one, oldest first.
//
// When Append fails, the session starts no further tool or model call, ends the
// input with a [JournalError], and appends the record again before the next input.
// With [ErrFenced] the session ends at once instead.
// With JournalOptional it warns, continues in memory, and does not call it again.
type Journal interface {
	Append(ctx context.Context, e event.Event) error
	Sync(ctx context.Context) error
	Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
}

// ContextStore keeps what is too large for a turn, as long as the session's log
// exists: the full output of tools and the bytes of images.
type ContextStore interface {
	// Create starts to store a tool's output.
	Create(ctx context.Context, meta OutputMeta) (StoredOutput, error)
	// PutBlob keeps data under its SHA-256 (hex), which it returns.
	PutBlob(ctx context.Context, data []byte) (string, error)
	// Open opens an output by its handle or a blob by its hash. The error is an
	// fs.ErrNotExist if it is not in the store.
	Open(ctx context.Context, id string) (File, error)
}

// HandlePrefix begins the handles of stored outputs. Tools that read files open
// them by these names, in every environment and without approval.
const HandlePrefix = "context:"

// Hider keeps the secrets of a text out of all later records, as a Journal may. A
// session calls Hide with what it does not record, which a model may repeat.
type Hider interface{ Hide(text string) }

// OutputMeta describes an output.
type OutputMeta struct {
	Tool string
	Args string
	Call string
	Time time.Time
}

// StoredOutput is an output being written. It can be read while it is written.
type StoredOutput interface {
	io.WriteCloser
	io.ReaderAt
	Handle() string // HandlePrefix and an id
	Path() string   // the file on this machine; empty if there is none
}

// ToolTable provides the current tools.
type ToolTable interface {
	// Snapshot returns the current table. It is immutable, and the same one
	// until a tool changes. An error names a source that could not be read;
	// the snapshot is then valid and holds the others.
	Snapshot(ctx context.Context) (*Snapshot, error)
}
