package service

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// Opener opens a session on this machine. Base has what belongs to the service: ID,
// Journal, Store, OpenSubagent, OnSubagent, Asker and Hooks; the opener adds the rest, such as the
// Provider. Questions are not waited for: the Asker parks the session.
type Opener func(ctx context.Context, s Session, base agent.SessionOptions) (host.Opened, error)

// WorkerOptions configure a [Worker]. Engine and Open are required.
type WorkerOptions struct {
	Engine Engine
	Open   Opener
	Places int          // sessions at the same time; 0 = 1
	Logger *slog.Logger // nil discards
	// Workspaces has the directories of sessions on this machine; without it, sessions
	// that want one fail.
	Workspaces *workspace.Root
	// AnswerWithin is how long a session waits for the answers to its questions. Then they
	// are denied, and it continues. 0 = 24 hours.
	AnswerWithin time.Duration
	// SaveWithin is how long saving a session's workspace may take at the end of a turn. If
	// it takes longer, only this machine can continue the session. 0 = 5 minutes.
	SaveWithin time.Duration
	// Quotas bound tenants: a schedule that is due waits until they allow its session.
	Quotas *Quotas
	// PrivateWebhooks lets webhooks reach this machine and private networks, also by http.
	PrivateWebhooks bool
}

// Worker runs sessions that have work.
type Worker struct{ opts WorkerOptions }

// NewWorker returns a worker.
func NewWorker(o WorkerOptions) (*Worker, error) {
	if o.Engine == nil || o.Open == nil {
		return nil, errors.New("service.NewWorker: Engine and Open are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Places = max(1, o.Places)
	if o.AnswerWithin <= 0 {
		o.AnswerWithin = answerWithin
	}
	if o.SaveWithin <= 0 {
		o.SaveWithin = saveWithin
	}
	return &Worker{o}, nil
}

const (
	wakeEvery   = 10 * time.Second
	failedPause = time.Second // before what failed is tried again, then twice as long, and so on
	maxDoubled  = 8
)

// Run takes sessions and runs them until ctx is done. Those that are running then are
// left to other workers, at once. It returns when all is let go of.
func (w *Worker) Run(ctx context.Context) {
	if root := w.opts.Workspaces; root != nil {
		leave, err := w.opts.Engine.Present(root.ID())
		if err != nil {
			w.opts.Logger.WarnContext(ctx, "other machines do not know that the workspaces of this one are here", "error", err)
		} else {
			defer leave()
		}
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { w.wake(ctx) })
	work.Go(func() { w.expire(ctx) })
	work.Go(func() { w.fire(ctx) })
	work.Go(func() { w.take(ctx, webhookPlaces, w.opts.Engine.TakeWebhook, "webhook", w.deliver) })
	w.take(ctx, w.opts.Places, w.opts.Engine.Take, "session", w.commands)
}

// take runs what it takes, in a number of places, until ctx is done.
func (w *Worker) take(ctx context.Context, n int, take func(context.Context) (Lease, error), what string, run func(context.Context, *holding) error) {
	var work sync.WaitGroup
	defer work.Wait()
	places := make(chan struct{}, n)
	for {
		select {
		case <-ctx.Done():
			return
		case places <- struct{}{}:
		}
		lease, err := take(ctx)
		if err != nil {
			<-places
			if ctx.Err() == nil {
				w.opts.Logger.WarnContext(ctx, "no work can be taken", "error", err)
			}
			pause(ctx, failedPause)
			continue
		}
		work.Go(func() {
			defer func() { <-places }()
			w.work(ctx, lease, what, run)
		})
	}
}

// wake finds the work of sessions whose sender or worker died at a bad moment.
func (w *Worker) wake(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.opts.Engine.Wake(ctx); err != nil && ctx.Err() == nil {
			w.opts.Logger.WarnContext(ctx, "sessions with commands cannot be listed", "error", err)
		}
		pause(ctx, wakeEvery)
	}
}

// pause returns after a while, or when ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work does what is to be done under a lease, and ends it.
func (w *Worker) work(ctx context.Context, l Lease, what string, run func(context.Context, *holding) error) {
	defer l.Close()
	h := hold(ctx, l)
	defer h.end()
	tenant, id := l.Session()
	err := run(h.ctx, h)
	after := time.Duration(0)
	switch {
	case !h.held(), errors.Is(err, core.ErrFenced): // it is another worker's, who alone may end the lease
		w.opts.Logger.WarnContext(ctx, "another worker has taken over the "+what, what, id, "tenant", tenant)
		return
	case err == nil:
		if err = l.Done(context.WithoutCancel(ctx)); err != nil {
			w.opts.Logger.WarnContext(ctx, "the lease cannot be ended", what, id, "tenant", tenant, "error", err)
		}
		return
	case ctx.Err() == nil && errors.Is(err, workspace.ErrElsewhere): // on one of the next
		after = failedPause
	case ctx.Err() == nil:
		after = failedPause << min(l.Tries(), maxDoubled)
		w.opts.Logger.WarnContext(ctx, "the "+what+" is tried again", what, id, "tenant", tenant, "error", err)
	}
	if err := l.Release(context.WithoutCancel(ctx), after); err != nil {
		w.opts.Logger.WarnContext(ctx, "the lease cannot be released", what, id, "tenant", tenant, "error", err)
	}
}

// commands carries out the commands of a session.
func (w *Worker) commands(ctx context.Context, h *holding) error {
	t := &turn{worker: w, hold: h}
	t.tenant, t.id = h.lease.Session()
	return t.run(ctx)
}

// turn is the work on a session under one lease.
type turn struct {
	worker     *Worker
	hold       *holding
	tenant, id string
	session    Session
	cut        bool // a worker died in the middle of a turn
	log        *sessionLog
	heard      atomic.Bool // commands were sent during the last one
}

// run carries out the session's commands until there are no more.
func (t *turn) run(ctx context.Context) error {
	engine := t.worker.opts.Engine
	for {
		commands, err := engine.Commands(ctx, t.tenant, t.id)
		if err != nil || len(commands) == 0 {
			return err
		}
		c := commands[0]
		if err := t.command(ctx, c, commands[1:]); err != nil && !errors.Is(err, errGone) {
			return err
		}
		if err := engine.Remove(ctx, t.tenant, t.id, c.Number); err != nil {
			return err
		}
		if len(commands) == 1 && !t.sent() { // if it was missed, the end of the lease finds it
			return nil
		}
	}
}

// sent reports whether commands were sent since they were last read.
func (t *turn) sent() bool {
	select {
	case <-t.hold.lease.Sent():
		return true
	default:
		return t.heard.Swap(false)
	}
}

// errGone is the error of a session that was deleted, or never created.
var errGone = errors.New("there is no such session")

func (t *turn) command(ctx context.Context, c Command, behind []Command) error {
	if c.Type == typeCancel { // what it was to cancel has its result
		return nil
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	err := t.carryOut(ctx, c, behind)
	if err == nil {
		err = t.tell(ctx, c)
	}
	if err != nil {
		err = errors.Join(err, t.note(err))
	}
	return err
}

// begin takes the log over, once, and says that the session is running.
func (t *turn) begin(ctx context.Context) error {
	engine := t.worker.opts.Engine
	if t.log != nil {
		return t.running(ctx)
	}
	var err error
	if t.session, err = t.entry(ctx); err != nil {
		return err
	}
	t.cut = t.session.State == StateRunning
	journal, err := engine.Journal(ctx, t.tenant, t.id)
	if err != nil {
		return err
	}
	t.log = &sessionLog{grouped: group(journal), settled: map[string]bool{}, usage: map[string]Usage{}}
	// From now on only who takes over next changes the entry, but for a last change of
	// the former owner, who may just be writing it.
	for {
		if err = t.running(ctx); !errors.Is(err, core.ErrFenced) || ctx.Err() != nil {
			return err
		}
		if t.session, err = t.entry(ctx); err != nil {
			return err
		}
	}
}

func (t *turn) entry(ctx context.Context) (Session, error) {
	s, err := t.worker.opts.Engine.Get(ctx, t.tenant, t.id)
	if errors.Is(err, fs.ErrNotExist) {
		err = errGone
	}
	return s, err
}

func (t *turn) running(ctx context.Context) error {
	t.session.Questions, t.session.Deadline, t.session.Error = nil, time.Time{}, ""
	return t.update(ctx, StateRunning)
}

func (t *turn) update(ctx context.Context, state State) error {
	t.session.State, t.session.Updated = state, time.Now().UTC()
	return t.worker.opts.Engine.Update(ctx, &t.session)
}

// note says why a session does not get on, if it is still ours.
func (t *turn) note(why error) error {
	if t.hold.ctx.Err() != nil || errors.Is(why, core.ErrFenced) {
		return nil
	}
	t.session.Error = why.Error()
	return t.update(t.hold.ctx, StateQueued)
}
