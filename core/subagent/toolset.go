package subagent

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Session is the part of [core.Session] that is needed of an agent's session.
type Session interface {
	ID() string
	State() core.State
	// Start begins an input, as that of [core.Session]. When it returns, a resumed parent
	// knows of the input.
	Start(ctx context.Context, in core.Input) (work func() (core.Outcome, error), err error)
	Steer(in core.Input)
	Unread() bool
	Cancel(reason string)
	Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
	Detach(ctx context.Context) error
	Close() error
}

// Request is what a [Host] needs to open the session of a subagent.
type Request struct {
	Parent     core.SessionInfo
	Name       string // the last part of its agent path
	Definition *Definition
	WorkingDir string // below the parent's; empty = the parent's
	Isolated   bool   // it works in a worktree: its session is an [Isolated]
	Model      string // empty = the parent's
	Effort     model.Effort
	MaxTurns   int // 0 = none, as the limits below
	MaxTokens  int
	MaxCost    float64 // USD
	// Session is that of an agent of another process, to resume it; empty = a new one.
	Session string
	// Began is called with the session's ID before it starts; may be nil.
	Began func(session string)
}

// Isolated is the session of an agent that works in a copy of the workspace.
// Closing it drops what it changed there.
type Isolated interface {
	Session
	// Changes returns what it changed, and the name of that state. It must not be
	// called while an input is being processed.
	Changes(ctx context.Context) (Changes, error)
	// Apply makes the changes of a state in the workspace, and returns the paths
	// that it left as they are, with the reasons.
	Apply(ctx context.Context, state string) (conflicts []string, err error)
	// Branch makes a branch of its files in the user's repository. An empty name
	// lets it choose one.
	Branch(ctx context.Context, name, message string) (branch string, err error)
}

// Changes are what an isolated agent changed.
type Changes struct {
	State string
	Root  string // the directory of the workspace that paths are relative to
	Files []event.FileChange
	Left  []string // paths that are not part of it, with the reasons
}

// Host opens the sessions of subagents: with the environment and policy of the
// parent, never more permissions, its asker, and no higher limits than the
// parent has left. Errors are returned to the model.
type Host interface {
	Spawn(ctx context.Context, req Request) (Session, error)
}

// Options configure a [Toolset].
type Options struct {
	Definitions []Definition
	MaxDepth    int // levels of agents below the root; 0 = 1
	MaxAgents   int // open agents per session; 0 = 8
	// Notify tells a session that a background agent is done; nil = there are none.
	Notify func(parent, text string)
	// Lost records that an agent that worked when its process ended cannot be resumed.
	Lost func(parent string, end event.SubagentEnd)
}

// Toolset has the tools with which sessions use their subagents. It serves any
// number of sessions.
type Toolset struct {
	host Host
	opts Options

	mu     sync.Mutex
	agents map[string][]*agent // by the parent session's id
	closed bool
	names  int // ids assigned so far
	wg     sync.WaitGroup
}

var _ core.Toolset = (*Toolset)(nil)

// New returns a toolset. Close ends all subagents.
func New(host Host, opts Options) *Toolset {
	opts.MaxDepth, opts.MaxAgents = cmp.Or(opts.MaxDepth, 1), cmp.Or(opts.MaxAgents, 8)
	return &Toolset{host: host, opts: opts, agents: map[string][]*agent{}}
}

// Name implements [core.Toolset].
func (s *Toolset) Name() string { return "subagent" }

// Changed implements [core.Toolset].
func (s *Toolset) Changed() <-chan struct{} { return nil }

// Tools implements [core.Toolset].
func (s *Toolset) Tools(context.Context) ([]core.Tool, error) {
	return []core.Tool{s.spawnTool(), s.sendTool(), s.waitTool(), s.applyTool(), s.closeTool()}, nil
}

// Close implements [core.Toolset].
func (s *Toolset) Close() error {
	s.mu.Lock()
	s.closed = true
	parents := make([]string, 0, len(s.agents))
	for id := range s.agents {
		parents = append(parents, id)
	}
	s.mu.Unlock()
	for _, id := range parents {
		s.End(id)
	}
	s.wg.Wait()
	return nil
}

// End closes the subagents of a session that ended.
func (s *Toolset) End(parent string) {
	s.mu.Lock()
	list := s.agents[parent]
	delete(s.agents, parent)
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, a := range list {
		wg.Go(a.end)
	}
	wg.Wait()
}

// Detach lets go of the agents of a session, which another process can resume, and ends
// them here. See [core.Session.Detach].
func (s *Toolset) Detach(ctx context.Context, parent string) error {
	s.mu.Lock()
	list := slices.Clone(s.agents[parent])
	s.mu.Unlock()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, a := range list {
		if session := a.opened(); session != nil {
			wg.Go(func() { errs[i] = session.Detach(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Cancel cancels what the subagents of a session are doing; see
// [core.Session.Cancel].
func (s *Toolset) Cancel(parent, reason string) {
	s.mu.Lock()
	list := slices.Clone(s.agents[parent])
	s.mu.Unlock()
	for _, a := range list {
		if session := a.opened(); session != nil {
			session.Cancel(reason)
		}
	}
}

// AwaitBackground waits until no background agent of a session is working.
func (s *Toolset) AwaitBackground(ctx context.Context, parent string) {
	s.mu.Lock()
	list := slices.Clone(s.agents[parent])
	s.mu.Unlock()
	for _, a := range list {
		if a.notify == nil {
			continue
		}
		_, done := a.state()
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// agent is a subagent.
type agent struct {
	id, name string
	session  Session // nil if it is of another process and was not used since
	ctx      context.Context
	stop     context.CancelFunc
	notify   func(outcome) // of an agent in the background, when it is done

	mu   sync.Mutex
	done chan struct{} // closed when the current input is done
	last outcome
	seen string // the state that apply_result may apply

	inputs int // submitted so far

	// Of an agent of another process.
	past   *past
	parent core.SessionInfo
	waking sync.Mutex
	lost   error // why it cannot be used
}

// opened returns the session, nil if it is not open.
func (a *agent) opened() Session {
	a.waking.Lock()
	defer a.waking.Unlock()
	return a.session
}

// outcome is the result of an input.
type outcome struct {
	Status  string  `json:"status"` // running, completed, failed
	Output  string  `json:"output,omitempty"`
	Success bool    `json:"success"`
	Turns   int     `json:"turns"`
	Tokens  int     `json:"tokens,omitempty"`
	CostUSD float64 `json:"costUsd,omitempty"`
	Stop    string  `json:"stop,omitempty"`  // of a failure, a core.StopReason
	Error   string  `json:"error,omitempty"` // of a failure
	// Files are what an isolated agent changed.
	Files []event.FileChange `json:"files,omitempty"`
}

// begin submits an input to the agent, which must be idle.
func (a *agent) begin(wg *sync.WaitGroup, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	done := make(chan struct{})
	a.done, a.last = done, outcome{Status: "running", Turns: a.last.Turns}
	a.inputs++
	in := core.TextInput(text)
	in.ID = strconv.Itoa(a.inputs) // another process that resumes the agent does not submit it twice
	work := a.start(in)            // before the call that sends it has its result
	wg.Go(func() {
		defer close(done)
		for a.more(work()) {
			work = a.start(core.Input{}) // continues with the messages
		}
		if out, _ := a.state(); a.notify != nil && a.ctx.Err() == nil && out.Stop != string(core.StopCancelled) {
			a.notify(out)
		}
	})
}

// start begins an input, and returns what processes it.
func (a *agent) start(in core.Input) (work func() (core.Outcome, error)) {
	work, err := a.session.Start(a.ctx, in)
	if err != nil {
		return func() (core.Outcome, error) { return core.Outcome{}, err }
	}
	return work
}

// more takes the outcome of an input. It returns true if messages arrived too late for
// the last model call: the agent is not done before it has read them.
func (a *agent) more(out core.Outcome, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	done := err == nil && (out.Stop == core.StopDone || out.Stop == core.StopAwaitingInput)
	a.last.Turns += 1 + out.Rounds
	a.last.Tokens += out.Usage.Total()
	a.last.CostUSD += out.Cost
	if done && a.session.Unread() {
		return true
	}
	a.last.Status, a.last.Success, a.last.Output = "completed", done, out.Text
	if !done {
		a.last.Status, a.last.Stop = "failed", string(out.Stop)
		if err != nil {
			a.last.Error = err.Error()
		}
	}
	return false
}

// steer adds a message to the agent's work, unless it is done.
func (a *agent) steer(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last.Status != "running" {
		return false
	}
	a.session.Steer(core.TextInput(text))
	return true
}

func (a *agent) state() (outcome, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last, a.done
}

// end closes the agent and waits for it.
func (a *agent) end() {
	a.stop()
	if session := a.opened(); session != nil {
		_ = session.Close() // there is no way to handle an error
	}
	_, done := a.state()
	<-done
}

// find returns a subagent of the calling session, ready to be used.
func (s *Toolset) find(ctx context.Context, call *core.Call, id string) (*agent, *core.Result) {
	a, refusal := s.lookup(call, id)
	if refusal != nil {
		return nil, refusal
	}
	if err := s.wake(ctx, a); err != nil {
		r := core.Failf(core.CodeNotFound, "%v.", err)
		return nil, &r
	}
	return a, nil
}

// lookup returns a subagent of the calling session.
func (s *Toolset) lookup(call *core.Call, id string) (*agent, *core.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, a := range s.agents[call.Session.ID] {
		if a.id == id {
			return a, nil
		}
		ids = append(ids, a.id)
	}
	r := core.Failf(core.CodeNotFound, "There is no agent %q. Agents: %s.", id, cmp.Or(strings.Join(ids, ", "), "none; start one with spawn_agent"))
	return nil, &r
}

// remove removes a subagent from the list.
func (s *Toolset) remove(parent string, a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[parent] = slices.DeleteFunc(s.agents[parent], func(other *agent) bool { return other == a })
}

// errClosed is the error of adding an agent after Close.
var errClosed = errors.New("the program is ending")

// add adds a new agent, up to the limit.
func (s *Toolset) add(parent string, a *agent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case len(s.agents[parent]) >= s.opts.MaxAgents:
		return fmt.Errorf("there are already %d agents: close one with close_agent", s.opts.MaxAgents)
	}
	s.agents[parent] = append(s.agents[parent], a)
	return nil
}

// nextID returns ids such as agent-3.
func (s *Toolset) nextID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names++
	return fmt.Sprint("agent-", s.names)
}

// answer is a result as text and as data.
func answer(text string, data any) (core.Result, error) {
	r := core.TextResult(text)
	var err error
	r.Structured, err = json.Marshal(data)
	return r, err
}
