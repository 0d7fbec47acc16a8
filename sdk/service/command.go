package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// The types of a [Command].
const (
	typeInput    = "input"
	typeAnswer   = "answer"
	typeContinue = "continue"
	typeCompact  = "compact"
	typeCancel   = "cancel"
)

// Check says what is wrong with a command, as a *[host.Error].
func (c Command) Check() error {
	switch {
	case c.Type != typeInput && c.Type != typeAnswer && c.Type != typeContinue && c.Type != typeCompact && c.Type != typeCancel:
		return &host.Error{Code: host.CodeInvalid, Message: fmt.Sprintf("unknown command %q: use input, answer, continue, compact or cancel", c.Type)}
	case c.When != "" || c.Work != "":
		return &host.Error{Code: host.CodeInvalid, Message: "when and work: leave them out; inputs are processed in order"}
	case c.Type == typeInput:
		return c.Command.Check()
	}
	return nil
}

// carryOut carries out a command, or what is left of it. When it returns without an
// error, the result is in the log, and the entry says what the session is doing.
func (t *turn) carryOut(ctx context.Context, c Command, behind []Command) error {
	_, cancelled := cancelIn(behind)
	s, done, err := t.openUntilCancelled(ctx, c, behind)
	if err != nil {
		return t.giveUp(ctx, c, cancelled || errors.Is(err, errCancelled), err)
	}
	defer done()
	now := s.Now()
	switch {
	case t.log.has(c.ID):
	case cancelled && c.Type == typeInput && now.State == core.StateIdle: // it does not begin
		err = t.log.result(ctx, t.id, event.Result{Run: c.ID, Outcome: string(core.StopCancelled)}, s)
	default:
		err = t.process(ctx, s, c, behind)
		now = s.Now()
	}
	done()
	if err != nil {
		t.leave(ctx, err)
		return err
	}
	outdated := t.save(ctx)
	if err := t.log.grouped.Sync(ctx); err != nil {
		return err
	}
	if t.session.Questions = now.Questions; len(now.Questions) > 0 {
		t.session.Deadline = time.Now().UTC().Add(t.worker.opts.AnswerWithin)
	}
	t.session.Usage = t.log.used()
	state := State(now.State)
	if now.State == core.StateClosed {
		state = StateFailed
	}
	if err := t.update(ctx, state); err != nil {
		return err
	}
	t.forget(ctx, outdated)
	return nil
}

// maxTries is how often workers try to open a session, within about a minute.
const maxTries = 6

// giveUp ends a command of a session that cannot be opened, if it was cancelled, or if
// that was tried often enough. Otherwise it returns why, and it is tried again. A
// workspace on another machine is waited for.
func (t *turn) giveUp(ctx context.Context, c Command, cancelled bool, why error) error {
	waits := errors.Is(why, workspace.ErrElsewhere) || t.hold.lease.Tries() < maxTries
	if ctx.Err() != nil || errors.Is(why, core.ErrFenced) || waits && !cancelled {
		return why
	}
	for _, err := range t.log.Replay(ctx, 0) {
		if err != nil {
			return err
		}
	}
	r := event.Result{Run: c.ID, Outcome: string(core.StopCancelled)}
	t.session.Error = why.Error()
	if !cancelled {
		why = fmt.Errorf("the session cannot be opened, which was tried %d times: %w", maxTries, why)
		r.Outcome, r.Error = string(core.StopError), new(event.ErrorOf(why))
	}
	if !t.log.has(c.ID) {
		if err := t.log.append(ctx, t.id, r); err != nil {
			return err
		}
	}
	if err := t.log.grouped.Sync(ctx); err != nil {
		return err
	}
	t.session.Usage = t.log.used()
	return t.update(ctx, StateFailed)
}

var errCancelled = errors.New("it was cancelled while the session was being opened")

// openUntilCancelled opens the session, which may take as long as a clone, or as a server
// that does not start. If a cancel is sent behind the command meanwhile, the error is
// [errCancelled]; but an answer is recorded in any case.
func (t *turn) openUntilCancelled(ctx context.Context, c Command, behind []Command) (*host.Session, func(), error) {
	opening, cancel := context.WithCancelCause(ctx)
	looking, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	if _, known := cancelIn(behind); !known && c.Type != typeAnswer {
		following.Go(func() { t.follow(looking, c.Number, behind, func(error) { cancel(errCancelled) }) })
	}
	s, done, err := t.open(ctx, opening)
	stop()
	following.Wait()
	cancelled := errors.Is(context.Cause(opening), errCancelled)
	if err == nil && !cancelled { // what was opened may need its context
		return s, func() { done(); cancel(nil) }, nil
	}
	if err == nil {
		done()
	}
	cancel(nil)
	if cancelled {
		err = errCancelled
	}
	return nil, nil, err
}

// open opens the session on this machine, and ends it with the lease, whose context is
// ctx.
func (t *turn) open(ctx, opening context.Context) (s *host.Session, done func(), err error) {
	engine := t.worker.opts.Engine
	base := agent.SessionOptions{
		ID: t.id, Journal: t.log, Store: engine.Store(t.tenant, t.id), Asker: parking{}, Hooks: core.Hooks{BeforeTool: t.hold.beforeTool},
		OpenSubagent: func(ctx context.Context, id string) (core.Journal, core.ContextStore, error) {
			id = t.id + "/" + id
			j, err := engine.Journal(ctx, t.tenant, id)
			return group(j), engine.Store(t.tenant, id), err
		},
	}
	var showing sync.WaitGroup // with an open session it has one
	base.OnSubagent = func(child *core.Session) {
		showing.Go(func() {
			t.show(ctx, t.id+"/"+child.ID(), child.Events(context.WithoutCancel(ctx), child.Opened()-1))
		})
	}
	h := host.New("", func(ctx context.Context, _ host.Open, _ core.Asker) (host.Opened, error) {
		if err := t.prepare(ctx); err != nil {
			return host.Opened{}, err
		}
		opened, err := t.worker.opts.Open(ctx, t.session, base)
		if err == nil && opened.Session == nil {
			err = errors.New("the opener returned no session")
		}
		return opened, err
	})
	if s, err = h.Open(opening, host.Open{ID: t.id}); err != nil {
		return nil, nil, err
	}
	showing.Go(func() { t.show(ctx, t.id, s.Events(context.WithoutCancel(ctx), s.Past())) })
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	return s, sync.OnceFunc(func() {
		stop()
		if err := h.Close(); err != nil {
			t.worker.opts.Logger.WarnContext(ctx, "the session was not closed well", "session", t.id, "tenant", t.tenant, "error", err)
		}
		showing.Wait()
	}), nil
}

// prepare makes the session's workspace, or finds it. The entry says where it is before
// anything can change in it: on another machine it would be made again, without that.
func (t *turn) prepare(ctx context.Context) (err error) {
	if t.session.Workspace == (workspace.Spec{}) || t.session.Dir != "" {
		return nil
	}
	root := t.worker.opts.Workspaces
	switch {
	case root == nil:
		return errors.New("the session has a workspace, and this worker has no place for any")
	case t.session.Place != "" && t.session.Place != root.ID():
		return t.bring(ctx, root)
	}
	if t.session.Place == "" {
		t.session.Place, t.session.Snapshot = root.ID(), &Snapshot{}
		if err := t.update(ctx, StateRunning); err != nil {
			return err
		}
	}
	t.session.Dir, err = root.Prepare(ctx, t.tenant, t.id, t.session.Workspace)
	return err
}

// show sends the deltas of a session or a subagent to those who watch, until it is closed.
func (t *turn) show(ctx context.Context, id string, events iter.Seq2[event.Event, error]) {
	var kept event.Seq
	for e, err := range events {
		switch {
		case err != nil:
			return
		case e.IsDelta():
			_ = t.worker.opts.Engine.Show(ctx, t.tenant, id, e, kept) // it may be missing
		default:
			kept = e.Seq
		}
	}
}

// process runs a command until its result is in the log.
func (t *turn) process(ctx context.Context, s *host.Session, c Command, behind []Command) error {
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { t.follow(run, c.Number, behind, cancel) })
	out, err := s.Run(run, t.hostCommand(s, c))
	cancel(nil)
	switch {
	case t.log.has(c.ID):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.log.failure() != nil:
		return t.log.failure()
	}
	// The command was refused, or the session ended with an error of the model.
	if err == nil {
		err = fmt.Errorf("the session ended: %s", out.Stop)
	}
	t.session.Error = err.Error()
	return t.log.result(ctx, t.id, event.Result{Run: c.ID, Outcome: string(core.StopError), Error: new(event.ErrorOf(err))}, s)
}

// hostCommand is the command for the session. An answer that is recorded already, by a
// worker that died, leaves the session to be continued.
func (t *turn) hostCommand(s *host.Session, c Command) host.Command {
	h := c.Command
	h.Run, h.InputID = c.ID, c.ID
	now := s.Now()
	waits := now.State == core.StateUnfinished || now.State == core.StateParked && len(now.Questions) == 0
	if c.Type == typeAnswer && waits && t.log.has(answerTo+c.Question) {
		return host.Command{Type: typeContinue, Run: c.ID}
	}
	return h
}

// follow cancels a run when a cancel is behind its command, or is sent.
func (t *turn) follow(ctx context.Context, number uint64, behind []Command, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(t.hold.lease.Term() / 4) // what was sent may be missed
	defer tick.Stop()
	if t.heard.Load() { // while the session was being opened
		behind = t.behind(ctx, number)
	}
	for {
		if reason, found := cancelIn(behind); found {
			cancel(errors.New(reason))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-t.hold.lease.Sent():
			t.heard.Store(true)
		case <-tick.C:
		}
		behind = t.behind(ctx, number)
	}
}

// behind returns the commands behind one.
func (t *turn) behind(ctx context.Context, number uint64) []Command {
	list, err := t.worker.opts.Engine.Commands(ctx, t.tenant, t.id)
	if err != nil && ctx.Err() == nil {
		t.worker.opts.Logger.WarnContext(ctx, "commands cannot be read", "session", t.id, "tenant", t.tenant, "error", err)
	}
	return slices.DeleteFunc(list, func(c Command) bool { return c.Number <= number })
}

// cancelIn returns the reason of a cancel among commands.
func cancelIn(commands []Command) (reason string, found bool) {
	i := slices.IndexFunc(commands, func(c Command) bool { return c.Type == typeCancel })
	if i < 0 {
		return "", false
	}
	return cmp.Or(commands[i].Reason, "cancelled by the user"), true
}

// parking is an asker that waits for nobody: the answer comes as a command.
type parking struct{}

// Ask implements [core.Asker].
func (parking) Ask(context.Context, core.Question) (core.Answer, error) {
	return core.Answer{}, core.ErrParked
}

// sessionLog is a journal that knows which commands have results, and why it failed.
type sessionLog struct {
	*grouped

	mu      sync.Mutex
	settled map[string]bool // commands with a result, and questions with an answer
	last    event.Seq
	acted   event.Seq        // of the last tool that began
	usage   map[string]Usage // by day
	err     error
}

func (l *sessionLog) see(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := e.Seq <= l.last
	l.last = max(l.last, e.Seq)
	switch b := e.Body.(type) {
	case event.Result:
		l.settled[b.Run] = true
		if !known {
			u := Usage{Tokens: b.Usage}
			if b.CostUSD != nil {
				u.CostUSD = *b.CostUSD
			}
			l.usage[Day(e.Time)] = l.usage[Day(e.Time)].Add(u)
		}
	case event.Answer:
		l.settled[answerTo+b.QID] = true
	case event.ToolUse, event.FilesChanged, event.SubagentEnd:
		l.acted = max(l.acted, e.Seq)
	}
}

// answerTo and a question is the answer to it. It is no ID of a command.
const answerTo = "answer "

// has reports whether the log has the result of a command, or an answer.
func (l *sessionLog) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled[id]
}

// newest returns the number of the last event.
func (l *sessionLog) newest() event.Seq {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// lastAct returns the number of the last event behind which files may have changed.
func (l *sessionLog) lastAct() event.Seq {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acted
}

// used returns what the results in the log used, by day.
func (l *sessionLog) used() map[string]Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.usage)
}

func (l *sessionLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Append implements [core.Journal].
func (l *sessionLog) Append(ctx context.Context, e event.Event) error {
	err := l.grouped.Append(ctx, e)
	if err == nil {
		l.see(e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	return err
}

// Sync implements [core.Journal]. The worker syncs the log before the entry says that the
// session is not running.
func (l *sessionLog) Sync(context.Context) error { return nil }

// Replay implements [core.Journal].
func (l *sessionLog) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range l.grouped.Replay(ctx, after) {
			if err == nil {
				l.see(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// result closes the session and records a result that it has not recorded.
func (l *sessionLog) result(ctx context.Context, id string, r event.Result, s *host.Session) error {
	if err := s.Close(); err != nil {
		return err
	}
	return l.append(ctx, id, r)
}

// append records an event behind the last one.
func (l *sessionLog) append(ctx context.Context, id string, b event.Body) error {
	return l.Append(ctx, event.Event{V: event.Version, Seq: l.newest() + 1, Time: time.Now(), Session: id, Body: b})
}
