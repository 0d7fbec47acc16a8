package service

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// State is what a session is doing: a [core.State], or one of those below.
type State string

// The states of a session beside those in [core.State].
const (
	StateQueued  State = "queued"  // no worker has had it yet
	StateRunning State = "running" // a worker has it, or had it when it died
	StateFailed  State = "failed"  // see [Session].Error; another input continues it
)

// Session is what is known of a session without its log.
type Session struct {
	Tenant  string            `json:"tenant"`
	ID      string            `json:"id"`
	Title   string            `json:"title,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Spec    json.RawMessage   `json:"spec,omitempty"` // for the [Opener]
	Created time.Time         `json:"created"`
	// Workspace says where the session works, Place names the [workspace.Root] that has it.
	Workspace workspace.Spec `json:"workspace,omitzero"`
	Place     string         `json:"place,omitempty"`
	// Snapshot is that of the workspace at the end of the last turn, if the session has one
	// for itself; without Files before the first one. Nil: only Place can continue.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
	// Dir is the directory of the workspace, for the [Opener]; empty without.
	Dir string `json:"-"`

	// Imported is the SHA-256 of the logs that the session came with from another place.
	Imported string `json:"imported,omitempty"`

	State     State            `json:"state"`
	Updated   time.Time        `json:"updated"`
	Questions []event.Question `json:"questions,omitempty"` // that it is parked with
	Deadline  time.Time        `json:"deadline,omitzero"`   // of the questions: then they are denied
	Error     string           `json:"error,omitempty"`     // why it failed, or is tried again

	// Usage is what the session used, by day of UTC as 2006-01-02.
	Usage map[string]Usage `json:"usage,omitempty"`

	Revision uint64 `json:"-"` // of this entry
}

// Snapshot is the state of a workspace, from which another machine continues.
type Snapshot struct {
	workspace.Saved
	After event.Seq `json:"after"` // the last event that was in the log then
}

// Usage is what inputs used, with those of subagents.
type Usage struct {
	Tokens  model.Usage `json:"tokens"`
	CostUSD float64     `json:"costUsd,omitempty"` // as far as prices are known
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage { return Usage{u.Tokens.Add(v.Tokens), u.CostUSD + v.CostUSD} }

// Day is the day of a time, as in [Session].Usage.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Command is a [host.Command] for a session: an input, an answer, a continue, a compact
// or a cancel. Its result has the command's ID as its run.
type Command struct {
	// ID identifies the command: of several with the same ID, one is carried out.
	ID string `json:"id"`
	host.Command
	Number uint64 `json:"-"` // commands of a session are carried out in this order
}

// Record is an event of a session, for who watches.
type Record struct {
	// Cursor is where to continue to watch behind this record. That of a delta is 0: it
	// is not kept, and may be missing.
	Cursor uint64
	Event  event.Event
}

// Filter says which sessions [Engine.List] returns: those for which all holds that is set.
type Filter struct {
	Tenant string    // empty = all tenants
	Before string    // lower IDs
	State  State     // in this state
	Due    time.Time // with questions whose deadline is not after this
	Limit  int       // at most so many; 0 = all
}

// Matches reports whether a session is one of those that the filter wants.
func (f Filter) Matches(s Session) bool {
	return (f.Tenant == "" || s.Tenant == f.Tenant) && (f.Before == "" || s.ID < f.Before) && (f.State == "" || s.State == f.State) &&
		(f.Due.IsZero() || !s.Deadline.IsZero() && !s.Deadline.After(f.Due))
}

// Engine keeps sessions, by tenant and ID. It is safe for concurrent use. The ID of a
// subagent's log is that of its session, a slash, and the subagent's own.
type Engine interface {
	// Create adds a session; [fs.ErrExist] if there is one.
	Create(ctx context.Context, s Session) error
	// Get returns a session; [fs.ErrNotExist] without one.
	Get(ctx context.Context, tenant, id string) (Session, error)
	// Update replaces what is known of a session, and sets the new revision. The error
	// is [core.ErrFenced] if that has changed since s was read, or the session was deleted.
	Update(ctx context.Context, s *Session) error
	// List returns sessions, those with the highest IDs first.
	List(ctx context.Context, f Filter) ([]Session, error)
	// Delete deletes a session with its log, outputs and commands. A writer of it is fenced.
	Delete(ctx context.Context, tenant, id string) error

	// Value returns what is kept of a tenant under a name, with its revision: nil and 0
	// if that is nothing.
	Value(ctx context.Context, tenant, name string) (data []byte, revision uint64, err error)
	// SetValue replaces it; [core.ErrFenced] if its revision is another one by now.
	SetValue(ctx context.Context, tenant, name string, data []byte, revision uint64) error
	// Tenants returns the tenants that have a value with a name.
	Tenants(ctx context.Context, name string) ([]string, error)

	// Journal opens the log, new or not, and takes it over: former owners are fenced.
	Journal(ctx context.Context, tenant, id string) (Journal, error)
	// Store returns the store of the session's outputs.
	Store(tenant, id string) core.ContextStore
	// PutOutput adds an output with a handle that it got elsewhere.
	PutOutput(ctx context.Context, tenant, id, handle string, content io.Reader) error
	// RemoveOutput removes an output that was added by PutOutput, if it is there.
	RemoveOutput(ctx context.Context, tenant, id, handle string) error
	// Watch yields the records behind a cursor, past and future, until ctx is done, with
	// the deltas of [Engine.Show] in between. Cursor 0 is the beginning.
	Watch(ctx context.Context, tenant, id string, cursor uint64) iter.Seq2[Record, error]
	// Show sends a delta to those who watch, if any, behind the event with the number
	// after, which is in the log.
	Show(ctx context.Context, tenant, id string, delta event.Event, after event.Seq) error

	// Send keeps a command until it is removed, and gives the session to a worker.
	Send(ctx context.Context, tenant, id string, c Command) error
	// Commands returns the commands that were sent and not removed, in order.
	Commands(ctx context.Context, tenant, id string) ([]Command, error)
	// Remove removes a session's commands up to a number.
	Remove(ctx context.Context, tenant, id string, number uint64) error
	// Take waits for a session that has work and that no worker has.
	Take(ctx context.Context) (Lease, error)
	// TakeWebhook does so for webhooks, whose notices are kept as commands: see [IsWebhook].
	TakeWebhook(ctx context.Context) (Lease, error)
	// Present says that this process has the workspaces of a place, until leave is called.
	Present(place string) (leave func(), err error)
	// IsPresent reports whether a process has the workspaces of a place.
	IsPresent(ctx context.Context, place string) (bool, error)
	// Wake gives sessions that have commands to workers, also when the process that was to
	// do so died. Workers call it now and then.
	Wake(ctx context.Context) error
}

// Journal is the log of a session, or of a subagent.
type Journal interface {
	core.Journal
	// AppendAll appends up to [MaxTogether] events at the price of one: all of them are
	// stored, or none.
	AppendAll(ctx context.Context, list []event.Event) error
}

// MaxTogether is how many events [Journal].AppendAll takes.
const MaxTogether = 64

// Lease is a session that a worker has, for a time. It is safe for concurrent use.
type Lease interface {
	Session() (tenant, id string)
	// Tries is how often workers let go of the session since it last had no work.
	Tries() int
	// Term is the time that the lease lasts from when it was taken or renewed.
	Term() time.Duration
	// Renew extends the lease, and must not be called when it is over: another worker
	// may have the session.
	Renew(ctx context.Context) error
	// Sent receives when commands were sent. It may miss some.
	Sent() <-chan struct{}
	// Done ends the lease of a session without work. Like Release it must not be called
	// by a worker that was fenced.
	Done(ctx context.Context) error
	// Release ends the lease, and lets another worker have the session after a while.
	Release(ctx context.Context, after time.Duration) error
	// Close frees what belongs to the lease in this process.
	Close()
}
