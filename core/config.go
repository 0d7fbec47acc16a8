package core

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Config is all that a session works with. All that is not deterministic comes
// in here, so that a session can be rebuilt from its Journal alone. Provider,
// Env and Policy are required.
type Config struct {
	ID      string // empty = NewID()
	Version string // of the host program, for the record
	// Parent and AgentPath say whose subagent this session is.
	Parent    string
	AgentPath []string

	Provider model.Provider
	Model    string // empty = the provider's
	Profile  Profile
	Request  RequestOptions

	Env     Environment
	Tools   ToolTable       // nil = none
	Policy  Policy          // decides on every call
	Asker   Asker           // nil = nobody is there: what would be asked is denied
	Context []ContextSource // add to each input
	Hooks   Hooks
	Limits  Limits

	Journal Journal      // nil = in memory only
	Store   ContextStore // nil = full outputs are kept nowhere
	// Secrets are replaced by a marker in everything that tools print.
	Secrets []string
	// Cost prices a call's usage in USD; nil, or false, when it is not known. It
	// is called once for every answer, those of a resumed session included.
	Cost func(model string, u model.Usage) (float64, bool)

	Clock  func() time.Time // nil = time.Now
	NewID  func() string    // nil = random
	Logger *slog.Logger     // nil = silent
	Tracer trace.Tracer     // nil = none
}

// RequestOptions go into every request. They can change between two calls.
type RequestOptions struct {
	Effort          model.Effort
	MaxTokens       int // of one response; 0 leaves it to the provider
	Temperature     *float64
	OutputSchema    json.RawMessage
	ProviderOptions map[string]json.RawMessage
}

// Limits bound a session. Zero means none, save where it says otherwise.
type Limits struct {
	MaxTurns         int     // user and assistant turns over the session
	MaxRounds        int     // rounds of tool calls for one input
	MaxInputTokens   int     // tokens used for one input
	MaxSessionTokens int     // tokens used over the session
	MaxCost          float64 // USD over the session, where prices are known
	WarnAt           float64 // fraction of a token limit that warns; 0 = 0.8
	CompactAt        float64 // fraction of the context window at which the conversation is compacted; 0 = never

	CommandTimeout    time.Duration // of a command; 0 = 10 s
	MaxCommandTimeout time.Duration // that a call may ask for; 0 = 600 s
	ParallelCalls     int           // calls side by side; 0 = 8
	Output            map[string]OutputLimit

	NoLoopDetection bool
	LoopWindow      int // calls looked at; 0 = 10
}

func (l Limits) withDefaults() Limits {
	def := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.CommandTimeout, 10*time.Second)
	def(&l.MaxCommandTimeout, 600*time.Second)
	if l.WarnAt <= 0 {
		l.WarnAt = 0.8
	}
	if l.ParallelCalls <= 0 {
		l.ParallelCalls = 8
	}
	if l.LoopWindow <= 0 {
		l.LoopWindow = 10
	}
	return l
}

// Profile fits a session to a family of models: data and a prompt.
type Profile struct {
	Name string
	// Prompt builds the system prompt. It is called once when the session
	// starts and again after a change of model or profile; in between the
	// text stays the same to the byte. Nil means no prompt.
	Prompt func(ctx context.Context, req PromptRequest) (string, error)
	// Sequential runs all tool calls one after the other.
	Sequential bool
	// ContextWindow is the model's, in tokens; 0 = not known.
	ContextWindow int
	// CommandTimeout replaces the default of Limits; 0 = does not.
	CommandTimeout time.Duration
	// Asks reports whether an answer ends the turn with a question to the
	// person. Nil means: its last character is a question mark.
	Asks func(text string) bool
}

// PromptRequest is what a prompt is built from.
type PromptRequest struct {
	Provider string
	Model    string
	Env      EnvInfo
	Time     time.Time
	// Environment is where the project's own instructions are; may be nil.
	Environment Environment
}

// ContextSource adds to what the person said, such as an activated skill. A
// source that fails costs a warning, not the turn; blocks that it returns with
// the error count.
type ContextSource interface {
	Context(ctx context.Context, req ContextRequest) ([]Block, error)
}

// ContextRequest is what a source goes by.
type ContextRequest struct {
	Session SessionInfo
	Input   model.Parts
	Budget  int // tokens that the source's blocks should fit in
}

// Block is a text that goes into the user turn.
type Block struct {
	Source  string // who says it
	Trusted bool   // the person's own words or files
	Text    string
	Event   event.Body // is recorded before the turn and says why the block is there; may be nil
}

// Hooks are a host's Go functions at three points of the loop. Each may be nil.
type Hooks struct {
	// BeforeModel may change the request (a copy; what it points to is shared
	// and must be replaced, not changed). An error ends the processing.
	BeforeModel func(ctx context.Context, req *model.Request) error
	// BeforeTool may change the arguments or the tool's name, or deny the call
	// with an error. A changed call is checked like any other.
	BeforeTool func(ctx context.Context, call *model.ToolCall) error
	// AfterTool may change the result before anybody sees it.
	AfterTool func(ctx context.Context, call model.ToolCall, result *Result)
}

// Journal is where a session is written down. A session appends from one
// goroutine at a time; Replay may run at the same time.
//
// Append returns when the record would survive the end of this process, Sync
// when it would survive the end of the machine's power. Replay yields the
// records after the given one, oldest first.
//
// When Append fails, the session warns once, goes on in memory, and does not
// call it again.
type Journal interface {
	Append(ctx context.Context, e event.Event) error
	Sync(ctx context.Context) error
	Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
}

// ContextStore keeps what is too large for a turn, as long as the session's
// record exists: the full output of tools and the bytes of images.
type ContextStore interface {
	// Create opens a place for a tool's output.
	Create(ctx context.Context, meta OutputMeta) (StoredOutput, error)
	// PutBlob keeps data under its SHA-256 (hex), which it returns.
	PutBlob(ctx context.Context, data []byte) (string, error)
	// Open opens an output by its handle or a blob by its hash. It returns an
	// error that is fs.ErrNotExist for one that is not there, any more or yet.
	Open(ctx context.Context, id string) (File, error)
}

// HandlePrefix begins the handles of stored outputs. A tool that reads files
// opens them by these names, in every environment and without asking.
const HandlePrefix = "context:"

// OutputMeta says what an output is.
type OutputMeta struct {
	Tool string
	Args string
	Call string
	Time time.Time
}

// StoredOutput is an output that is being written. Reading it back while it is
// written is allowed.
type StoredOutput interface {
	io.WriteCloser
	io.ReaderAt
	Handle() string // HandlePrefix and an id
	Path() string   // the file on this machine; empty if there is none
}

// ToolTable gives out the tools as they are now.
type ToolTable interface {
	// Snapshot returns the present table. It is immutable, and the same one
	// until a tool changes. An error names a source that could not be read;
	// the snapshot then holds the others and is valid.
	Snapshot(ctx context.Context) (*Snapshot, error)
}
