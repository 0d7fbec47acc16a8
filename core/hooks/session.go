package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// maxContinues is how often in a row Stop hooks may keep the agent working.
const maxContinues = 8

// BindOptions describe a session to its hooks.
type BindOptions struct {
	Type string // of a subagent: its agent type, "default" without a definition
	// Source is how the session begins: "startup", "resume" or "clear".
	Source string
	// Parent are the hooks of the session that started this one.
	Parent *Bound
	// More returns the hooks of the session beside those of the engine; see [Place].
	More func() []Definition
}

// Bound are the hooks of one session. A nil Bound has none; its methods then return
// what they are given. It is safe for concurrent use; the caller calls Close.
type Bound struct {
	e        *Engine
	opts     BindOptions
	cfg      core.Config // as it was before
	session  atomic.Pointer[core.Session]
	ctx      context.Context // of what nobody waits for
	cancel   context.CancelFunc
	detached sync.WaitGroup

	shared *shared
	script transcript

	mu       sync.Mutex
	provider model.Provider
	policy   core.Policy
	model    string
	answer   *model.Request // the last request that is no compaction
	manual   bool           // the user asked for the compaction
	focus    string
	begun    bool
	blocked  *BlockedError
	stops    int // continuations in a row
	reason   string
	waking   []chan struct{} // of asynchronous hooks that may wake the model, closed when they are done
}

// shared is what the hooks of a session and of its subagents have in common.
type shared struct {
	mu       sync.Mutex
	once     map[string]bool     // hooks that ran, of those that run once
	calls    map[string]*verdict // by session and call
	sessions map[string]*Bound
	// variables are those that SessionStart hooks set for commands, as NAME=value.
	variables []string
}

// verdict is what the hooks said about a call.
type verdict struct {
	name      string
	raw, args string // as the model wrote them, and with corrections
	out       Outcome
	sensitive bool // it can access files that may contain secrets
	answers   bool // its approval may come from a hook
}

// Bind adds the engine's hooks to a configuration. The caller must Attach the session
// that is opened with it. A nil engine changes nothing and returns nil.
func (e *Engine) Bind(cfg *core.Config, o BindOptions) *Bound {
	if e == nil {
		return nil
	}
	b := &Bound{e: e, opts: o, cfg: *cfg, provider: cfg.Provider, policy: cfg.Policy, model: cfg.Model, reason: "other"}
	if b.shared = (&shared{once: map[string]bool{}, calls: map[string]*verdict{}, sessions: map[string]*Bound{}}); o.Parent != nil {
		b.shared = o.Parent.shared
	}
	b.shared.mu.Lock()
	b.shared.sessions[cfg.ID] = b
	b.shared.mu.Unlock()
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.cfg.ToolEnv = cmp.Or(cfg.ToolEnv, cfg.Env)
	b.cfg.Tools = cmp.Or(cfg.Tools, core.StaticTools())
	b.script.journal, b.script.session = cfg.Journal, b.info()
	cfg.Provider, cfg.Policy, cfg.Hooks = b.Provider(cfg.Provider), b.Policy(cfg.Policy), b.hooks(cfg.Hooks)
	if o.Parent == nil && b.may(PermissionRequest, Notification) && (cfg.Asker != nil || e.Has(PermissionRequest)) {
		cfg.Asker = &asker{cfg.Asker, b}
	}
	if b.may(SessionStart, UserPromptSubmit, SubagentStart, Stop, SubagentStop) {
		cfg.Context = append([]core.ContextSource{b}, cfg.Context...)
	}
	if b.may(FileChanged) && cfg.Watcher != nil {
		cfg.Watcher = &watcher{cfg.Watcher, b}
	}
	return b
}

// Attach sets the session.
func (b *Bound) Attach(s *core.Session) {
	if b != nil {
		b.session.Store(s)
	}
}

// Ending says why the session is about to be closed: "clear", "resume",
// "prompt_input_exit" or "other", which is the default.
func (b *Bound) Ending(reason string) {
	if b != nil {
		b.mu.Lock()
		b.reason = cmp.Or(reason, "other")
		b.mu.Unlock()
	}
}

// Close runs the SessionEnd hooks, and ends what still runs.
func (b *Bound) Close() {
	if b == nil {
		return
	}
	if b.opts.Parent == nil {
		b.run(context.Background(), Input{Event: SessionEnd, Reason: b.reason}, nil, nil)
	}
	b.Detach()
}

// Detach ends what still runs, of a session that has not ended.
func (b *Bound) Detach() {
	if b == nil {
		return
	}
	b.cancel()
	b.detached.Wait()
	b.script.close()
	b.shared.mu.Lock()
	delete(b.shared.sessions, b.cfg.ID)
	b.shared.mu.Unlock()
}

// of returns the hooks of the session or of a subagent.
func (b *Bound) of(session string) *Bound {
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	return cmp.Or(b.shared.sessions[session], b)
}

// has reports whether an event has hooks now.
func (b *Bound) has(events ...Event) bool {
	return b.e.Has(events...) || b.opts.More != nil && slices.ContainsFunc(b.opts.More(), func(d Definition) bool { return slices.Contains(events, d.Event) })
}

// may reports whether an event has hooks, or can get some.
func (b *Bound) may(events ...Event) bool { return b.opts.More != nil || b.e.Has(events...) }

// input fills in what all hooks of the session get.
func (b *Bound) input(in Input) Input {
	in.Session, in.Cwd = b.cfg.ID, b.cfg.Env.Info().Dir
	b.mu.Lock()
	policy := b.policy
	b.mu.Unlock()
	if b.e.opts.Mode != nil {
		in.Mode = b.e.opts.Mode(policy)
	}
	if len(b.cfg.AgentPath) > 0 {
		in.AgentID, in.AgentType = b.cfg.ID, b.opts.Type
	}
	return in
}

// place is where the hooks of the session run.
func (b *Bound) place() Place {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Place{
		Env: b.cfg.Env, Session: b.info(), Provider: b.provider, Model: b.model, More: b.opts.More, Skip: b.skip, Detach: b.detach,
	}
}

func (b *Bound) info() core.SessionInfo {
	return core.SessionInfo{ID: b.cfg.ID, AgentPath: b.cfg.AgentPath, Dir: b.cfg.Env.Info().Dir}
}

// skip leaves out a hook that ran, if it runs once.
func (b *Bound) skip(d *Definition) bool {
	if !d.Handler.Once {
		return false
	}
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	key := string(d.Event) + d.key()
	ran := b.shared.once[key]
	b.shared.once[key] = true
	return ran
}

// detach runs a hook that the session does not wait for.
func (b *Bound) detach(d *Definition, run func(context.Context) Result) {
	done := make(chan struct{})
	if d.Handler.Rewake {
		b.mu.Lock()
		b.waking = append(b.waking, done)
		b.mu.Unlock()
	}
	b.detached.Go(func() {
		defer close(done)
		r := run(b.ctx)
		b.report(b.ctx, r, nil)
		text := r.Context
		if r.Decides && r.Verdict == core.Deny && r.Definition.Handler.Rewake {
			text = strings.TrimSpace(strings.Join([]string{text, r.Definition.Handler.RewakeMessage, r.Reason}, "\n"))
		}
		if s := b.session.Load(); s != nil && text != "" {
			s.Notify(said(r.Definition.Title(), text))
		}
	})
}

// Await waits for the asynchronous hooks that may wake the model.
func (b *Bound) Await(ctx context.Context) {
	if b == nil {
		return
	}
	b.mu.Lock()
	list := b.waking
	b.waking = nil
	b.mu.Unlock()
	for _, done := range list {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// run runs the hooks of an event, reports what they did, and stops the work if one
// wants that.
func (b *Bound) run(ctx context.Context, in Input, call *Call, tool *core.Call) Outcome {
	if !b.has(in.Event) {
		return Outcome{}
	}
	in, place := b.input(in), b.place()
	answer := ""
	if in.Event == Stop || in.Event == SubagentStop {
		answer = in.LastMessage
	}
	path, err := b.script.update(ctx, answer)
	if s := b.session.Load(); err != nil && s != nil {
		s.Warn(ctx, "HOOK", fmt.Sprintf("hooks get no transcript of the session: %v", err))
	}
	in.Transcript, place.Transcript = path, path
	out := b.e.Run(ctx, place, in, call, tool)
	for _, r := range out.Results {
		b.report(ctx, r, call)
	}
	if s := b.session.Load(); out.Stop && s != nil && in.Event != Stop && in.Event != SubagentStop {
		s.Cancel("a hook stopped the work: " + cmp.Or(out.Reason, "it gave no reason"))
	}
	return out
}

// report records what a hook did, and warns of its failure.
func (b *Bound) report(ctx context.Context, r Result, call *Call) {
	b.shared.mu.Lock()
	b.shared.variables = append(b.shared.variables, r.variables...) // the last one counts
	b.shared.mu.Unlock()
	s := b.session.Load()
	if s == nil {
		return
	}
	s.Note(ctx, r.Event(call))
	title := clip(r.Definition.Title(), 200)
	if r.Err != nil && (!r.Decides || r.Verdict != core.Deny) {
		s.Warn(ctx, "HOOK", fmt.Sprintf("the %s hook %q of %s failed: %v", r.Definition.Event, title, r.Definition.Source.Name, r.Err))
	}
	if r.Message != "" {
		s.Warn(ctx, "HOOK", r.Message)
	}
}

// Event describes the result as it is recorded.
func (r *Result) Event(call *Call) event.Hook {
	d := &r.Definition
	body := event.Hook{
		Event: string(d.Event), Name: clip(d.Title(), 500), Source: d.Source.Name, Kind: string(d.Handler.Type),
		Reason: r.Reason, Changed: r.Input != nil || r.Output != nil, Context: r.Context, DurationMS: r.DurationMS,
		Variables: r.Variables,
	}
	if call != nil {
		body.Tool, body.CallID = call.Name, call.ID
	}
	if r.Ran {
		body.ExitCode = &r.Code
	}
	switch {
	case r.Stop:
		body.Decision = "stop"
	case r.Decides && r.Verdict == core.Deny && !d.Event.Guards():
		body.Decision = "block"
	case r.Decides:
		body.Decision = r.Verdict.String()
	}
	if r.Err != nil {
		body.Error = r.Err.Error()
	}
	return body
}

// said is a hook's text for the model.
func said(title, text string) string {
	return fmt.Sprintf("A hook (%s) says: %s", clip(title, 100), text)
}

// Context implements [core.ContextSource]: it runs the hooks of an input, and returns
// what they add. If one refuses the input, the session is cancelled, and
// [Bound.Blocked] returns the reason.
func (b *Bound) Context(ctx context.Context, req core.ContextRequest) ([]core.Block, error) {
	b.mu.Lock()
	first := !b.begun
	b.begun, b.stops = true, 0
	b.mu.Unlock()
	var texts []string
	add := func(in Input) (out Outcome) {
		out = b.run(ctx, in, nil, nil)
		texts = append(append(texts, out.Context...), out.Initial)
		return out
	}
	switch {
	case len(b.cfg.AgentPath) > 0:
		add(Input{Event: SubagentStart})
	case first:
		add(Input{Event: SessionStart, Source: b.opts.Source, Model: b.cfg.Model})
	}
	if text := req.Input.Text(); len(b.cfg.AgentPath) == 0 && strings.TrimSpace(text) != "" {
		if out := add(Input{Event: UserPromptSubmit, Prompt: text}); out.Blocked() || out.Stop {
			b.block(&BlockedError{Reason: cmp.Or(out.Reason, "it gave no reason"), Hook: cmp.Or(out.By, string(UserPromptSubmit))})
		}
	}
	var blocks []core.Block
	for _, text := range texts {
		if text != "" {
			blocks = append(blocks, core.Block{Source: "hook", Trusted: true, Text: text})
		}
	}
	return blocks, nil
}

func (b *Bound) block(err *BlockedError) {
	b.mu.Lock()
	b.blocked = err
	b.mu.Unlock()
	if s := b.session.Load(); s != nil {
		s.Cancel(err.Error())
	}
}

// Blocked returns the error of the last input if a hook refused it, once. The caller
// takes the conversation back to before the input.
func (b *Bound) Blocked() *BlockedError {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.blocked
	b.blocked = nil
	return err
}

// Ended runs the StopFailure hooks if an input failed.
func (b *Bound) Ended(ctx context.Context, err error) {
	if b == nil || err == nil || errors.Is(err, context.Canceled) || errors.As(err, new(*core.JournalError)) {
		return
	}
	kind := "unknown"
	switch model.AsError(err).Code {
	case model.CodeRateLimited:
		kind = "rate_limit"
	case model.CodeAuthentication, model.CodeNotConfigured:
		kind = "authentication_failed"
	case model.CodeInvalidRequest, model.CodeContextLength:
		kind = "invalid_request"
	case model.CodeNetwork, model.CodeTimeout:
		kind = "server_error"
	}
	b.run(context.WithoutCancel(ctx), Input{Event: StopFailure, Error: kind, LastMessage: clip(err.Error(), maxText)}, nil, nil)
}

// Compact says that the user asked for a compaction, with a focus. The function that
// it returns says that it is over.
func (b *Bound) Compact(focus string) (over func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	b.manual, b.focus = true, focus
	b.mu.Unlock()
	return func() {
		b.mu.Lock()
		b.manual, b.focus = false, ""
		b.mu.Unlock()
	}
}
