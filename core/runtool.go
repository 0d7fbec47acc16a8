package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/answers"
	"github.com/seed-009c0928/agent/core/internal/repeat"
	"github.com/seed-009c0928/agent/core/internal/wording"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/output"
	"github.com/seed-009c0928/agent/core/timeout"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// abandonAfter is how long a tool may keep running after its call ended. It
// covers the two seconds between ending and killing a command.
const abandonAfter = 5 * time.Second

// pending is a tool call on its way through the pipeline.
type pending struct {
	call       model.ToolCall
	entry      Entry
	tool       *Call
	accesses   []Access
	decision   Decision
	approved   <-chan struct{} // closed by the next approval: decide again
	failed     *Result         // why it cannot run
	permission event.Permission
	parked     bool // the question about it stays open
	start      time.Time
	waited     time.Duration // for the user
	span       tracecontext.Span
	notes      []string // what was corrected in the call, for the model
	ended      func()   // lets Detach continue
}

// reads reports whether the call may run in parallel with others: the policy
// allowed it, and it only reads.
func (c *pending) reads() bool {
	if c.failed != nil || c.decision.Verdict != Allow || !c.entry.Tool.Definition().ReadOnly {
		return false
	}
	for _, a := range c.accesses {
		if a.Scope != ScopeRead {
			return false
		}
	}
	return true
}

// changes reports whether the call may change files.
func (c *pending) changes() bool {
	if c.entry.Tool.Definition().ReadOnly {
		return false
	}
	return slices.ContainsFunc(c.accesses, func(a Access) bool {
		return a.Scope != ScopeRead && a.Scope != ScopeNetwork && a.Scope != ScopeSubagent
	})
}

// title names the tool, with its source unless it is built in.
func (c *pending) title() string {
	if c.entry.Source == "" || c.entry.Source == "builtin" {
		return c.call.Name
	}
	return fmt.Sprintf("%s (from %s)", c.call.Name, c.entry.Source)
}

// runCalls runs the calls of one answer: adjacent reads in parallel, all others
// alone. Every call gets a result, in the order of the calls, until a question is
// parked.
func (s *Session) runCalls(r *run, snapshot *Snapshot, stop model.StopReason, calls []model.ToolCall) {
	switch stop { // the calls of a truncated response may be incomplete
	case model.StopMaxTokens, model.StopContentFilter, model.StopRefusal:
		s.skipCalls(r, calls, CodeValidation, fmt.Sprintf("the response was cut off (%s), so its arguments may be incomplete. Make the call again, with less in it", stop))
		return
	}
	if s.cfg.Watcher != nil {
		s.cfg.Watcher.Begin(r.ctx)
	}
	set := s.current()
	var next *pending
	for i := 0; i < len(calls) && !r.parked; {
		if r.soft.Err() != nil {
			s.record(r.ctx, calls[i], Fail(CodeCancelled, "The call was cancelled before it started."), nil, 0)
			i++
			continue
		}
		if next == nil {
			next = s.prepare(r, snapshot, calls[i])
		}
		batch := []*pending{next}
		next, i = nil, i+1
		for !set.profile.Sequential && batch[0].reads() && i < len(calls) && len(batch) < set.limits.ParallelCalls {
			if next = s.prepare(r, snapshot, calls[i]); !next.reads() {
				break // it is prepared, and runs alone after the batch
			}
			batch = append(batch, next)
			next, i = nil, i+1
		}
		s.runBatch(r, batch)
	}
}

// skipCalls answers calls that are not run.
func (s *Session) skipCalls(r *run, calls []model.ToolCall, code ErrorCode, why string) {
	for _, c := range calls {
		s.record(r.ctx, c, Failf(code, "This call was not run: %s.", why), nil, 0)
	}
}

// runBatch runs prepared calls in parallel and records them in order.
func (s *Session) runBatch(r *run, batch []*pending) {
	results := make([]Result, len(batch))
	if len(batch) == 1 {
		results[0] = s.runTool(r, batch[0])
	} else {
		var wg sync.WaitGroup
		for i, c := range batch {
			wg.Go(func() { results[i] = s.runTool(r, c) })
		}
		wg.Wait()
	}
	for i, c := range batch {
		if c.parked {
			r.parked = true
			continue
		}
		if c.permission.Decision == "deny" {
			r.out.Denied = append(r.out.Denied, c.permission)
		}
		s.conversation.AddResult(toolResult(c.call, results[i]))
	}
}

// prepare takes a call up to the policy's decision: look up, validate, ask the
// tool what it would touch, resolve the paths, decide. It changes nothing.
func (s *Session) prepare(r *run, snapshot *Snapshot, call model.ToolCall) *pending {
	c := &pending{call: call, start: s.cfg.Clock(), span: tracecontext.From(r.tools), ended: func() {}}
	fail := func(code ErrorCode, format string, args ...any) *pending {
		res := Failf(code, format, args...)
		c.failed = &res
		return c
	}
	var hooked error
	if hook := s.cfg.Hooks.BeforeTool; hook != nil {
		hooked = hook(r.ctx, &c.call)
		c.call.ID = call.ID
	}
	entry, known := snapshot.find(c.call.Name)
	if known && entry.ModelName != c.call.Name {
		c.notes = append(c.notes, fmt.Sprintf("the tool is called %s", entry.ModelName))
		c.call.Name = entry.ModelName
	}
	use := event.ToolUse{Name: c.call.Name, Source: entry.Source, Args: c.call.Args}
	logged := use
	logged.Args = s.loggedArgs(r.ctx, snapshot, c.call)
	if !s.conversation.Questions.Shown(call.ID) {
		c.span = c.span.Child(s.id, uint64(s.emitAs(r.ctx, call.ID, use, logged)))
	}
	switch {
	case hooked != nil:
		c.permission = event.Permission{Tool: c.call.Name, Decision: "deny", Decider: "hook", Reason: hooked.Error()}
		s.emit(r.ctx, call.ID, c.permission)
		return fail(CodePermission, "Permission denied: %v", hooked)
	case !known:
		return fail(CodeNotFound, "Unknown tool: %s. Available tools: %v.", c.call.Name, snapshot.Names())
	}
	c.entry = entry
	args := cmp.Or(c.call.Args, "{}") // some models send nothing for a tool without arguments
	corrected, notes, err := entry.Coerce(json.RawMessage(args))
	if err != nil {
		return fail(CodeValidation, "Invalid arguments for tool: %s: %v. Correct the arguments and call it again.", c.call.Name, err)
	}
	c.notes = append(c.notes, notes...)
	c.tool = &Call{ID: call.ID, Name: c.call.Name, Args: corrected, Session: s.info(), Env: s.cfg.ToolEnv}
	if err := s.decide(r.ctx, c); err != nil {
		return fail(CodeValidation, "Tool error (%s): %v", c.call.Name, err)
	}
	return c
}

// decide asks the tool for its accesses and the policy for its verdict.
func (s *Session) decide(ctx context.Context, c *pending) (err error) {
	defer s.recovered(ctx, "Access of "+c.call.Name, &err)
	c.approved = s.approved.Changed()
	granted := func(a Access) bool { return s.approved.Has(c.call.Name, recorded([]Access{a})[0]) }
	c.accesses, c.decision, err = Judge(ctx, s.current().policy, c.entry, c.tool, granted, s.approved.Rules()...)
	return err
}

// Judge returns what a call would touch and the policy's decision on it,
// without running it. Paths are resolved in call.Env. Granted and rules are what
// the user approved for the session; granted may be nil.
func Judge(ctx context.Context, policy Policy, e Entry, call *Call, granted func(Access) bool, rules ...string) ([]Access, Decision, error) {
	accesses, err := e.Tool.Access(ctx, call)
	if err != nil {
		return nil, Decision{}, err
	}
	accesses = slices.Clone(accesses)
	for i := range accesses {
		a := &accesses[i]
		if a.Inside = false; a.Scope.IsFile() {
			to, err := call.Env.Resolve(ctx, a.Resource)
			if err != nil {
				return nil, Decision{}, fmt.Errorf("path %q: %w", a.Resource, err)
			}
			a.Resource, a.Inside = to.Path, to.Inside
		}
	}
	return accesses, policy.Decide(ctx, PermissionRequest{
		Session: call.Session, Call: call.ID, Tool: call.Name, Source: e.Source, Args: call.Args, Accesses: accesses, Granted: granted, Rules: rules,
	}), nil
}

// recovered turns a panic of a tool into an error.
func (s *Session) recovered(ctx context.Context, what string, err *error) {
	if v := recover(); v != nil {
		s.cfg.Logger.ErrorContext(ctx, "panic", "in", what, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
		*err = fmt.Errorf("%s panicked: %v", what, v)
	}
}

// runTool takes a prepared call to its result. It is the only caller of
// Tool.Run: permission, restricted environment, timeout, full output and
// truncation are the same for every tool of every source.
func (s *Session) runTool(r *run, c *pending) Result {
	ctx := tracecontext.With(r.tools, c.span)
	defer func() { c.ended() }()
	var res Result
	var out *event.Output
	var sensitive []string
	var changes []event.Body
	if c.failed != nil {
		res = *c.failed
	} else if ok, why := s.permit(r.soft, c); c.parked {
		return res
	} else if !ok {
		res = Fail(CodePermission, wording.Denied(why))
	} else if r.soft.Err() != nil { // cancelled while it was asked, or its approval is not recorded
		res = Fail(CodeCancelled, "The call was cancelled before it started.")
	} else {
		c.start = s.cfg.Clock() // without the time that the user took
		sensitive = c.decision.Sensitive
		after := s.watch(ctx, c)
		c.tool.Interrupt = r.soft.Done()
		res, out = s.execute(ctx, c)
		if c.parked = s.conversation.Questions.Waits(c.call.ID); c.parked {
			return res // the tool runs again when its question is answered
		}
		changes = after(context.WithoutCancel(ctx))
	}
	if len(c.notes) > 0 {
		res.Content = append(slices.Clone(res.Content), model.Text{Text: "\n(Call corrected: " + strings.Join(c.notes, "; ") + ".)"})
	}
	if hook := s.cfg.Hooks.AfterTool; hook != nil {
		hook(ctx, c.call, &res)
	}
	if res.Code == "" && c.entry.Tool.Definition().Repeatable {
		if brief, ok := repeat.Read(s.Messages(), c.call, res.Content, s.cfg.Env.Info().Dir); ok {
			res.Content = brief
		}
	}
	s.emitResult(ctx, c.call, res, out, s.cfg.Clock().Sub(c.start), c.waited, sensitive)
	for _, body := range changes {
		s.emit(ctx, c.call.ID, body)
	}
	return res
}

// watch tells the watcher of a call that may change files.
func (s *Session) watch(ctx context.Context, c *pending) (after func(context.Context) []event.Body) {
	if s.cfg.Watcher == nil || !c.changes() {
		return func(context.Context) []event.Body { return nil }
	}
	return s.cfg.Watcher.Before(ctx, c.tool, c.accesses)
}

// execute runs an allowed call within its grants.
func (s *Session) execute(ctx context.Context, c *pending) (Result, *event.Output) {
	def := c.entry.Tool.Definition()
	limit := def.Output
	if l, ok := s.current().limits.Output[c.call.Name]; ok {
		limit = l
	}
	spool := output.NewSpool(limit, s.cfg.Secrets, s.fileFor(ctx, c), func(text string) {
		s.emit(ctx, c.call.ID, event.ToolOutputDelta{Text: text})
	})
	timer := timeout.New(ctx, def.Timeout)
	defer timer.Stop()
	c.tool.Env = Restrict(s.cfg.ToolEnv, c.decision.Grants, s.cfg.Store)
	c.tool.Output = spool
	c.tool.Progress = func(p Progress) {
		s.emit(ctx, c.call.ID, event.ToolProgress{Done: p.Done, Total: p.Total, Message: p.Message})
	}
	call := "" // of the question, if the call can run again with its answer
	if def.ReadOnly {
		call = c.call.ID
	}
	c.tool.Ask = func(ctx context.Context, q Question) (Answer, error) {
		timer.Pause()
		defer timer.Resume()
		q.Tool = c.call.Name
		return s.ask(ctx, call, q)
	}
	res := s.runIsolated(timer.Context(), c)
	c.waited += timer.Paused()
	if timer.Expired() { // the tool's own error is only that it was cancelled
		res = Failf(CodeTimeout, "%s timed out after %s, its limit. Ask for less at a time, or try another way.", c.title(), def.Timeout)
	}
	return s.shape(ctx, spool, res, len(c.decision.Sensitive) == 0)
}

// fileFor returns what opens the file for a call's long output; nil without a
// store.
func (s *Session) fileFor(ctx context.Context, c *pending) func() (output.File, error) {
	if s.cfg.Store == nil || len(c.decision.Sensitive) > 0 {
		return nil
	}
	return func() (output.File, error) {
		return s.cfg.Store.Create(context.WithoutCancel(ctx), OutputMeta{Tool: c.call.Name, Args: c.call.Args, Call: c.call.ID, Time: c.start})
	}
}

// runIsolated calls Run so that neither a panic nor a tool that ignores its
// context can block the session.
func (s *Session) runIsolated(ctx context.Context, c *pending) Result {
	res, ended := timeout.Await(ctx, abandonAfter, func() (res Result) {
		var err error
		defer func() {
			if err != nil {
				res = s.toolError(ctx, c, err)
			}
		}()
		defer s.recovered(ctx, "tool "+c.call.Name, &err)
		res, err = c.entry.Tool.Run(ctx, c.tool)
		return res
	})
	if !ended {
		s.Warn(ctx, "TOOL", fmt.Sprintf("%s did not stop within %s of being cancelled and was abandoned", c.call.Name, abandonAfter))
		return Failf(CodeTimeout, "%s did not stop when it was cancelled.", c.call.Name)
	}
	return res
}

// toolError turns a Go error into a result.
func (s *Session) toolError(ctx context.Context, c *pending, err error) Result {
	var denied *DeniedError
	code := CodeUnknown
	switch {
	case errors.As(err, &denied):
		code = CodePermission
	case errors.Is(context.Cause(ctx), timeout.ErrExpired):
		code = CodeTimeout
	case ctx.Err() != nil:
		code = CodeCancelled
	}
	return Failf(code, "Tool error (%s): %v", c.call.Name, err)
}

// shape joins live output and returned text, truncates what the model gets, and
// stores images if it may.
func (s *Session) shape(ctx context.Context, spool *output.Spool, res Result, store bool) (Result, *event.Output) {
	text, others := answers.Texts(res.Content)
	kept, full, err := spool.Finish(text)
	if err != nil {
		s.Warn(ctx, "STORE", fmt.Sprintf("the full output could not be stored: %v", err))
	}
	var parts model.Parts
	if kept != "" || len(others) == 0 {
		parts = model.Parts{model.Text{Text: kept}}
	}
	if store {
		others = s.storeImages(ctx, others)
	}
	res.Content = append(parts, others...)
	res.Structured = output.Redact(res.Structured, s.cfg.Secrets)
	for name, value := range res.Meta {
		res.Meta[name] = output.Redact(value, s.cfg.Secrets)
	}
	if full == nil {
		return res, nil
	}
	return res, &event.Output{Text: full.Text, Handle: full.Handle, Path: full.Path, Bytes: full.Bytes}
}
