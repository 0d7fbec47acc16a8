package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/snapshot"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/tracecontext"
	"github.com/seed-009c0928/agent/core/worktree"
)

// TaskOptions say with what a task is worked on; see core/bead.
type TaskOptions struct {
	Session SessionOptions // of each bead
	Impact  bead.Impact    // nil = nothing is known
	Review  bead.Reviewer  // nil = none
	// Timeout is that of each command of the criteria; 0 = 10 minutes.
	Timeout time.Duration
	// Show gets the events of the task; nil shows none.
	Show func(event.Event)
	// OnSession is called with the session of each bead before it works.
	OnSession func(*Session)
	// Allow decides about changed tests with onTestChange ask; nil stops the task.
	Allow func(ctx context.Context, found []event.Guard) bool
}

// Task is a task that this process works on. The caller closes it.
type Task struct {
	*bead.Runner
	close func() error
}

// Close releases the task, so that another process can resume it.
func (t *Task) Close() error { return t.close() }

// TasksDir returns the directory of the tasks below home, a Home of [Options].
func TasksDir(home string) string { return filepath.Join(home, "tasks") }

// taskLog is the name of a task's journal in its directory, without its suffix.
const taskLog = "beads"

// NewTaskID returns an ID for a task.
func NewTaskID() string { return strings.ToLower(rand.Text()[:8]) }

// StartTask begins a task, whose Task is a new ID. The agent must work on this machine
// and have a Home.
func (a *Agent) StartTask(ctx context.Context, task event.TaskStart, opts TaskOptions) (*Task, error) {
	if err := bead.Check(task); err != nil {
		return nil, err
	}
	if err := store.CheckID(task.Task); err != nil {
		return nil, err
	}
	if a.opts.Home == "" {
		return nil, errors.New("tasks need a home directory: set HOME or AGENT_HOME")
	}
	journal, err := store.Create(filepath.Join(TasksDir(a.opts.Home), task.Task), taskLog, a.redaction())
	if err != nil {
		return nil, taskError(task.Task, err)
	}
	return a.openTask(ctx, task.Task, journal, opts, func(o bead.Options) (*bead.Runner, error) { return bead.Start(ctx, o, task) })
}

// ResumeTask continues a task where it is, also one whose process was killed.
func (a *Agent) ResumeTask(ctx context.Context, id string, limits bead.Limits, opts TaskOptions) (*Task, error) {
	journal, err := store.Open(filepath.Join(TasksDir(a.opts.Home), id), taskLog, a.redaction())
	if err != nil {
		return nil, taskError(id, err)
	}
	return a.openTask(ctx, id, journal, opts, func(o bead.Options) (*bead.Runner, error) { return bead.Resume(ctx, o, limits) })
}

// ErrTaskInUse means that another process works on a task.
var ErrTaskInUse = errors.New("another process works on it")

// taskError names the task instead of its log.
func taskError(id string, err error) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return fmt.Errorf("task %s: %w", id, ErrTaskInUse)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no task %q; agent task list shows them", id)
	}
	return fmt.Errorf("task %s: %w", id, err)
}

func (a *Agent) openTask(_ context.Context, id string, journal *store.Journal, opts TaskOptions, open func(bead.Options) (*bead.Runner, error)) (_ *Task, err error) {
	t := &Task{close: journal.Close}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if a.opts.Env != nil {
		return nil, errors.New("tasks work only on this machine: leave out --env")
	}
	dir := a.env.Info().Dir
	tree, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	t.close = func() error { return errors.Join(tree.Close(), journal.Close()) }
	w, err := changes.Open(changes.Options{Dir: changes.Dir(a.opts.Home), Excludes: a.excludes(), Secret: a.hidden.In}, dir, dir)
	if err != nil {
		return nil, err
	}
	snapshots := &taskSnapshots{w, taskPrefix + id, a.refusal}
	trees := &taskTrees{agent: a, snapshots: snapshots, used: map[string]*worktree.Worktree{}}
	t.close = func() (err error) {
		if t.Runner != nil {
			err = trees.close(t.Status())
		}
		return errors.Join(err, w.Close(), tree.Close(), journal.Close())
	}
	t.Runner, err = open(bead.Options{
		Journal: journal, Worker: &taskWorker{a, opts, trees}, Snapshots: snapshots, Trees: trees, Tree: tree.FS(),
		Exec: taskExec{a, cmp.Or(opts.Timeout, 10*time.Minute)}, Impact: opts.Impact, Review: opts.Review,
		Show: a.taskEvent(opts.Show), Allow: opts.Allow, Price: opts.Session.Cost, NewID: newID,
	})
	return t, err
}

// taskEvent returns what learns of a task's events, besides its journal.
func (a *Agent) taskEvent(show func(event.Event)) func(event.Event) {
	return func(e event.Event) {
		if t := a.opts.Telemetry; t != nil {
			t.Event(e)
		}
		if show != nil {
			show(e)
		}
	}
}

// TaskStatus reads the status of a task below home, also of one under way. One that no
// process works on any more, although it did not end, is interrupted.
func TaskStatus(ctx context.Context, home, id string) (bead.Status, error) {
	works := TaskRunning(home, id) // before its end is read
	s, err := bead.Read(store.Read(ctx, filepath.Join(TasksDir(home), id), taskLog, 0))
	if err != nil {
		return s, taskError(id, err)
	}
	if !works && s.Task.Task != "" && !s.State.Final() {
		s.State = bead.Interrupted
	}
	return s, nil
}

// TaskRunning reports whether a process works on a task.
func TaskRunning(home, id string) bool {
	return store.InUse(filepath.Join(TasksDir(home), id), taskLog)
}

// FindTask returns the ID of the task below home that begins with a prefix.
func FindTask(home, prefix string) (string, error) {
	var found []string
	ids, err := taskIDs(home)
	for _, id := range ids {
		if id == prefix {
			return id, nil
		}
		if prefix != "" && strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(found) > 1:
		return "", fmt.Errorf("%q begins several tasks: %s", prefix, strings.Join(found, ", "))
	case len(found) == 0:
		return "", taskError(prefix, fs.ErrNotExist)
	}
	return found[0], nil
}

func taskIDs(home string) (ids []string, err error) {
	logs, err := filepath.Glob(filepath.Join(TasksDir(home), "*", taskLog+".jsonl"))
	for _, l := range logs {
		ids = append(ids, filepath.Base(filepath.Dir(l)))
	}
	return ids, err
}

// ListTasks returns the tasks below home, the last changed first. Those that cannot be
// read are left out, and named in the error.
func ListTasks(ctx context.Context, home string) (list []bead.Status, err error) {
	ids, err := taskIDs(home)
	for _, id := range ids {
		s, readErr := TaskStatus(ctx, home, id)
		if readErr != nil {
			err = errors.Join(err, readErr)
		} else if s.Task.Task != "" { // else its process died as it began
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b bead.Status) int { return b.Changed.Compare(a.Changed) })
	return list, err
}

// UndoTask takes back what a task below home changed. It returns the paths that stay,
// since they were changed by others.
func UndoTask(ctx context.Context, home, id string) (left []string, err error) {
	if left, err = undoTask(ctx, home, id); err == nil {
		err = sweepTasks(ctx, home)
	}
	return left, err
}

func undoTask(ctx context.Context, home, id string) (left []string, err error) {
	journal, err := store.Open(filepath.Join(TasksDir(home), id), taskLog, store.Options{})
	if err != nil {
		return nil, taskError(id, err)
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	status, err := bead.Read(journal.Replay(ctx, 0))
	if err != nil {
		return nil, err
	}
	w, err := changes.Open(changes.Options{Dir: changes.Dir(home)}, status.Task.Workspace, status.Task.Workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return bead.Undo(ctx, bead.Options{Journal: journal, Snapshots: &taskSnapshots{w: w, owner: taskPrefix + id}}, func(ctx context.Context, session string) error {
		return undoBead(ctx, home, session)
	})
}

// undoBead takes back what the tool calls of a bead changed whose session did not end.
func undoBead(ctx context.Context, home, session string) error {
	for e, err := range store.Read(ctx, SessionsDir(home), session, 0) {
		switch _, input := e.Body.(event.User); {
		case errors.Is(err, fs.ErrNotExist): // it had not begun
			return nil
		case err != nil:
			return err
		case input:
			if _, err = UndoSession(ctx, home, session, UndoOptions{Since: e.Seq}); errors.Is(err, changes.ErrNothing) {
				err = nil
			}
			return err
		}
	}
	return nil
}

// taskPrefix begins the names of what belongs to a task: its snapshots and worktrees.
const taskPrefix = "task-"

// taskSnapshots implements [bead.Snapshots].
type taskSnapshots struct {
	w       *snapshot.Workspace
	owner   string
	refuses func(ctx context.Context, path string, remove bool) string // why a change is not merged
}

// Take implements [bead.Snapshots].
func (s *taskSnapshots) Take(ctx context.Context) (string, error) {
	snap, err := s.w.Take(ctx, snapshot.TakeOptions{})
	if err != nil {
		return "", err
	}
	return snap.ID, s.w.Keep(s.owner, snap.ID)
}

// Changes implements [bead.Snapshots].
func (s *taskSnapshots) Changes(ctx context.Context, from, to string) ([]event.FileChange, error) {
	list, err := s.w.Changes(from, to)
	if err != nil {
		return nil, err
	}
	files, err := changes.Files(ctx, s.w, list, 256<<10)
	if err != nil {
		return nil, err
	}
	left, err := s.w.LeftOut(from, to)
	for _, l := range left {
		files = append(files, event.FileChange{Path: l.Path, Kind: string(snapshot.Modify)})
	}
	return files, err
}

// Restore implements [bead.Snapshots].
func (s *taskSnapshots) Restore(ctx context.Context, from, to string) (left []string, err error) {
	if from == to {
		return nil, nil
	}
	plan, err := s.w.Plan(ctx, from, to, nil)
	if err != nil {
		return nil, err
	}
	conflicts, err := s.w.Apply(ctx, plan)
	for _, c := range append(plan.Conflicts, conflicts...) {
		left = append(left, c.Path)
	}
	return left, err
}

// Merge implements [bead.Snapshots].
func (s *taskSnapshots) Merge(ctx context.Context, from, to string) (conflicts []string, err error) {
	plan, err := s.w.Plan(ctx, from, to, nil)
	if err != nil {
		return nil, err
	}
	for _, step := range plan.Steps {
		if reason := s.refuses(ctx, step.Path, step.Kind == snapshot.Delete); reason != "" {
			plan.Conflicts = append(plan.Conflicts, snapshot.Conflict{Path: step.Path, Reason: reason})
		}
	}
	more := plan.Conflicts
	if len(more) == 0 {
		more, err = s.w.Apply(ctx, plan)
	}
	for _, c := range more {
		conflicts = append(conflicts, c.Path+": "+c.Reason)
	}
	return conflicts, err
}

// taskExec implements [bead.Exec].
type taskExec struct {
	agent   *Agent
	timeout time.Duration
}

// Run implements [bead.Exec].
func (x taskExec) Run(ctx context.Context, command string) (bead.Exit, error) {
	a := x.agent
	dir := a.env.Info().Dir
	access := core.Access{Scope: core.ScopeShell, Resource: command}
	d := a.policy.Decide(ctx, core.PermissionRequest{
		Session: core.SessionInfo{Dir: dir}, Tool: "shell", Args: fmt.Appendf(nil, `{"command":%q}`, command), Accesses: []core.Access{access},
	})
	if d.Verdict == core.Deny {
		return bead.Exit{}, fmt.Errorf("%s is denied: %s", command, d.Reason)
	}
	cmd := core.Command{Script: command}
	for _, g := range d.Grants {
		if g.Scope == core.ScopeShell && g.Resource == command {
			cmd.Env = append(cmd.Env, g.Env...)
		}
	}
	grants := []core.Grant{{Access: access}}
	for _, scope := range []core.Scope{core.ScopeRead, core.ScopeWrite} {
		grants = append(grants, core.Grant{Access: core.Access{Scope: scope, Resource: dir, Recursive: true}})
	}
	limited, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	out, exit, err := core.Exec(limited, core.Restrict(a.env, grants, nil), cmd)
	switch {
	case ctx.Err() != nil:
		return bead.Exit{}, ctx.Err()
	case limited.Err() != nil:
		return bead.Exit{Code: -1, Output: string(out), TimedOut: true}, nil
	case err != nil:
		return bead.Exit{}, err
	}
	if exit.Code < 0 {
		exit.Code = 128 // a signal ended it
	}
	return bead.Exit{Code: exit.Code, Output: string(out)}, nil
}

// taskWorker implements [bead.Worker].
type taskWorker struct {
	agent *Agent
	opts  TaskOptions
	trees *taskTrees
}

// Work implements [bead.Worker].
func (w *taskWorker) Work(ctx context.Context, work bead.Assignment) (event.BeadResult, error) {
	a, o := w.agent, w.opts.Session
	o.Provider = work.Meter.Provider(o.Provider)
	o.Limits.MaxRounds = work.Rounds
	o.ID, o.Resume = work.Session, ""
	if rounds, err := roundsOf(ctx, SessionsDir(a.opts.Home), work.Session); err == nil {
		o.ID, o.Resume = "", work.Session
		o.Limits.MaxRounds = max(1, work.Rounds-rounds)
	}
	if work.Worktree != "" {
		at, err := w.trees.open(work.Worktree)
		if err != nil {
			return event.BeadResult{}, err
		}
		if o.place, err = a.localEnv(at.Info().Dir, nil); err != nil {
			return event.BeadResult{}, err
		}
		defer o.place.Close()
	}
	s, err := a.NewSession(ctx, o)
	if err != nil {
		return event.BeadResult{}, err
	}
	if w.opts.OnSession != nil {
		w.opts.OnSession(s)
	}
	within := tracecontext.With(ctx, tracecontext.Span{}.Child(work.Task, uint64(work.Seq)))
	out, err := s.Submit(within, core.Input{ID: work.Input, Content: model.TextParts(work.Prompt)})
	for err == nil && out.Stop == core.StopDone && s.AwaitBackground(ctx) {
		rounds, denied := out.Rounds, out.Denied
		out, err = s.Submit(within, core.Input{})
		out.Rounds, out.Denied = out.Rounds+rounds, append(denied, out.Denied...)
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	return beadResult(ctx, out, err)
}

// roundsOf counts the rounds of a session that was interrupted.
func roundsOf(ctx context.Context, dir, id string) (n int, err error) {
	for e, err := range store.Read(ctx, dir, id, 0) {
		if err != nil {
			return 0, err
		}
		if m, ok := e.Body.(event.Message); ok && len(m.Content.ToolCalls()) > 0 {
			n++
		}
	}
	return n, nil
}

// beadResult says what came of a session. What resuming it can mend is an error.
func beadResult(ctx context.Context, out core.Outcome, err error) (event.BeadResult, error) {
	r := event.BeadResult{Response: out.Text, Rounds: out.Rounds, Success: out.Stop == core.StopDone && err == nil}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		own := errors.Is(err, bead.ErrSpent)
		switch model.AsError(err).Code {
		case model.CodeContextLength, model.CodeInvalidResponse:
			own = true
		}
		if !own {
			return r, err
		}
		r.Errors = append(r.Errors, err.Error())
	}
	switch out.Stop {
	case core.StopAwaitingInput:
		r.Errors = append(r.Errors, "the answer asks a question, and nobody answers: decide by yourself")
	case core.StopTurnLimit:
		r.Errors = append(r.Errors, "the rounds of the bead were used up before the work was done")
	case core.StopCancelled, core.StopAborted:
		return r, errors.New("the session was cancelled")
	case core.StopTokenLimit, core.StopMaxTokens, core.StopRefused:
		r.Errors = append(r.Errors, "the session ended early: "+string(out.Stop))
	}
	for _, d := range out.Denied[:min(len(out.Denied), 5)] {
		r.Errors = append(r.Errors, fmt.Sprintf("a call of %s was denied: %s", d.Tool, d.Reason))
	}
	return r, nil
}
