package bead

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Assignment is the work of one bead.
type Assignment struct {
	Task    string // its ID
	Session string // ID; if there is such a session, it continues
	Input   string // the ID of the input, which a session takes once
	Prompt  string
	Rounds  int
	Seq     event.Seq // of the event that began the bead
	Meter   *Meter    // every provider of the session goes through it
	// Worktree is the name of the copy of the workspace in which the session works;
	// empty is the workspace.
	Worktree string

	bead int
}

// Worker runs the session of a bead to its end. What the model did wrong is in the
// result; an error means that the bead is not over, such as a provider that cannot be
// reached, and is continued when the task is resumed. It is safe for concurrent use.
type Worker interface {
	Work(ctx context.Context, a Assignment) (event.BeadResult, error)
}

// Snapshots know the states of the workspace.
type Snapshots interface {
	// Take takes a snapshot, and keeps it.
	Take(ctx context.Context) (id string, err error)
	// Changes tells what differs, with diffs; also what snapshots do not hold.
	Changes(ctx context.Context, from, to string) ([]event.FileChange, error)
	// Restore takes back what changed from one snapshot to another. What was changed
	// since, by others, stays; it returns these paths.
	Restore(ctx context.Context, from, to string) (left []string, err error)
	// Merge makes what changed between two snapshots of a worktree in the workspace. If
	// that is impossible for a path, nothing is changed, and these paths are returned,
	// with reasons. It may be repeated.
	Merge(ctx context.Context, from, to string) (conflicts []string, err error)
}

// Exit is how a command ended.
type Exit struct {
	Code     int
	Output   string
	TimedOut bool
}

// Exec runs the commands of criteria: confined as the session's commands, in the same
// environment. An error means that the command could not be started at all.
type Exec interface {
	Run(ctx context.Context, command string) (Exit, error)
}

// Impact knows what a change may break.
type Impact interface {
	// Section describes what is known about files and errors for a prompt.
	Section(ctx context.Context, input string, files, errors []string) string
	// Tests returns the commands of the tests that a change of files may break.
	Tests(ctx context.Context, files []string) []string
	// Affected returns the files that a change of files may break.
	Affected(ctx context.Context, files []string) []string
}

// Reviewer gives a second opinion on what passed all criteria. It can only withhold.
type Reviewer interface {
	// Review returns the objections, none if there are none.
	Review(ctx context.Context, task event.TaskStart, changed []event.FileChange, m *Meter) (objections []string, err error)
}

// Options are what a task is worked on with.
type Options struct {
	Journal   core.Journal
	Worker    Worker
	Snapshots Snapshots
	Exec      Exec
	Tree      fs.FS // the workspace, to read; it must not lead out of it
	Impact    Impact
	Review    Reviewer
	Trees     Worktrees // nil: one bead at a time
	// Show gets every event after it is recorded; nil shows none.
	Show func(event.Event)
	// Allow decides about changed tests with onTestChange ask; nil stops the task.
	Allow func(ctx context.Context, found []event.Guard) bool
	Price func(provider, model string, u model.Usage) (float64, bool)
	NewID func() string // of sessions
}

// Runner works on a task. One process at a time has its journal.
type Runner struct {
	opts  Options
	purse *purse // nil before the first session

	mu     sync.Mutex
	status Status
	failed error // of the journal
}

// Start begins a task in an empty journal.
func Start(ctx context.Context, opts Options, task event.TaskStart) (*Runner, error) {
	if err := Check(task); err != nil {
		return nil, err
	}
	base, err := opts.Snapshots.Take(ctx)
	if err != nil {
		return nil, fmt.Errorf("snapshot of the workspace: %w", err)
	}
	task.Base, task.Sealed = base, Seal(opts.Tree, allCriteria(task), nil)
	r := &Runner{opts: opts, status: Status{Beads: []Bead{}}}
	return r, errors.Join(r.emit(task), r.emit(event.TaskState{Task: task.Task, State: string(Running)}))
}

func allCriteria(t event.TaskStart) []event.TaskCriterion {
	all := slices.Clone(t.Criteria)
	for _, s := range t.Steps {
		all = append(all, s.Criteria...)
	}
	return all
}

// Limits are what a resume can change; zero keeps what was.
type Limits struct {
	TokenBudget, MaxBeads, Rounds, Worktrees int
	TestChange                               string
}

// Resume continues the task of a journal.
func Resume(ctx context.Context, opts Options, limits Limits) (*Runner, error) {
	status, err := Read(opts.Journal.Replay(ctx, 0))
	if err != nil {
		return nil, err
	}
	if status.Task.Task == "" {
		return nil, errors.New("the task was never started: the process died before")
	}
	switch {
	case status.State == Committed:
		return nil, errors.New("the task is complete; start another one")
	case status.Reason == ReasonUndone:
		return nil, errors.New("the changes of the task were taken back; start another one")
	}
	r := &Runner{opts: opts, status: status}
	t := status.Task
	t.TokenBudget, t.MaxBeads = cmp.Or(limits.TokenBudget, t.TokenBudget), cmp.Or(limits.MaxBeads, t.MaxBeads)
	t.Rounds, t.TestChange = cmp.Or(limits.Rounds, t.Rounds), cmp.Or(limits.TestChange, t.TestChange)
	t.Worktrees = cmp.Or(limits.Worktrees, t.Worktrees)
	if err := Check(t); err != nil {
		return nil, err
	}
	if old := status.Task; t.TokenBudget != old.TokenBudget || t.MaxBeads != old.MaxBeads || t.Rounds != old.Rounds || t.TestChange != old.TestChange || t.Worktrees != old.Worktrees {
		if err := r.emit(t); err != nil {
			return nil, err
		}
	}
	if status.State != Running {
		err = r.emit(event.TaskState{Task: t.Task, State: string(Running)})
	}
	return r, err
}

// Status returns the present status.
func (r *Runner) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Beads = slices.Clone(s.Beads)
	return s
}

// emit records an event durably, applies it and shows it.
func (r *Runner) emit(body event.Body) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.failed
	}
	id := r.status.Task.Task
	if t, ok := body.(event.TaskStart); ok {
		id = t.Task
	}
	e := event.Event{V: event.Version, Seq: r.status.last + 1, Time: time.Now().UTC(), Session: id, Body: body}
	ctx := context.Background() // a cancelled task must be recorded, too
	if err := r.opts.Journal.Append(ctx, e); err != nil {
		r.failed = fmt.Errorf("journal of the task: %w", err)
		return r.failed
	}
	if err := r.opts.Journal.Sync(ctx); err != nil {
		r.failed = fmt.Errorf("journal of the task: %w", err)
		return r.failed
	}
	r.status.Apply(e)
	if r.opts.Show != nil {
		r.opts.Show(e)
	}
	return nil
}

// Run works until the task is complete or cannot continue. When ctx ends, the task is
// cancelled, and can be resumed. After any other error it can be resumed as well.
func (r *Runner) Run(ctx context.Context) (Status, error) {
	for !r.status.State.Final() {
		if ctx.Err() != nil {
			reason := "it was stopped"
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				reason = cause.Error()
			}
			err := r.setTask(Cancelled, reason)
			return r.Status(), err
		}
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			return r.Status(), err
		}
	}
	return r.Status(), nil
}

// step makes the next transition. Beads that began together work at once, and are
// merged and verified one after the other.
func (r *Runner) step(ctx context.Context) error {
	if b := r.status.stuck(Blocked); b != nil {
		if err := r.rollBack(ctx); err != nil {
			return err
		}
		return r.setTask(Blocked, b.Reason)
	}
	open := r.status.open()
	if len(open) == 0 {
		return r.next(ctx)
	}
	var running []*Bead
	for _, b := range open {
		switch b.State {
		case Planned:
			return r.begin(ctx, b)
		case Analysing:
			return r.setBead(b, Running)
		case Running:
			running = append(running, b)
		}
	}
	switch {
	case len(running) > 0:
		return r.work(ctx, running)
	case open[0].State == Merging:
		return r.merge(ctx, open[0])
	}
	return r.verify(ctx, open[0])
}

func (r *Runner) setTask(s State, reason string) error {
	return r.emit(event.TaskState{Task: r.status.Task.Task, State: string(s), Reason: reason})
}

func (r *Runner) setBead(b *Bead, s State) error {
	return r.emit(event.TaskState{Task: b.Task, Bead: b.Bead, State: string(s)})
}

// next ends the task after the last bead, or begins others.
func (r *Runner) next(ctx context.Context) error {
	t, last := r.status.Task, r.status.ended()
	if err := r.rollBack(ctx); err != nil {
		return err
	}
	share := 0
	if t.TokenBudget > 0 {
		share = r.status.Used * 100 / t.TokenBudget
	}
	spent := r.status.stuck(Exhausted)
	switch {
	case last != nil && last.End.Complete:
		return r.setTask(Committed, "")
	case t.TokenBudget > 0 && t.TokenBudget-r.status.Used < reserveAnswer || last != nil && last.Finishing && share >= lastShare:
		return r.setTask(Exhausted, fmt.Sprintf("%d of %d tokens are used", r.status.Used, t.TokenBudget))
	case spent != nil:
		return r.setTask(Exhausted, spent.Reason)
	case len(r.status.Beads) >= t.MaxBeads:
		return r.setTask(Exhausted, fmt.Sprintf("%s of %d: the criteria are not met", ReasonBeads, t.MaxBeads))
	}
	before, err := r.opts.Snapshots.Take(ctx)
	if err != nil {
		return fmt.Errorf("snapshot of the workspace: %w", err)
	}
	for _, start := range r.wave(ctx, share >= lastShare) {
		start.Before = before
		if err := r.emit(start); err != nil {
			return err
		}
	}
	return nil
}

// takeBack takes back what beads changed, the last one first. What others changed
// since stays; these paths are returned. It may be repeated.
func takeBack(ctx context.Context, snapshots Snapshots, beads []Bead) (left []string, err error) {
	for _, b := range slices.Backward(beads) {
		some, err := snapshots.Restore(ctx, b.End.After, b.Before)
		if err != nil {
			return left, fmt.Errorf("take back the changes of bead %d: %w", b.Bead, err)
		}
		left = append(left, some...)
	}
	return left, nil
}

// Undo takes back what a task changed, as far as nobody changed it since; other paths
// are returned. What a bead changed that did not end is taken back from its session.
// The journal must not be in use.
func Undo(ctx context.Context, opts Options, session func(ctx context.Context, id string) error) (left []string, err error) {
	status, err := Read(opts.Journal.Replay(ctx, 0))
	if err != nil {
		return nil, err
	}
	if len(status.Beads) == 0 {
		return nil, errors.New("the task has changed nothing yet")
	}
	for _, b := range slices.Backward(status.open()) {
		var some []string
		switch {
		case b.State == Merging && b.merging: // in part, maybe
			some, err = opts.Snapshots.Restore(ctx, b.snapshot, b.base)
		case b.State == Verifying:
			some, err = opts.Snapshots.Restore(ctx, b.snapshot, b.Before)
		case b.State == Running && b.Worktree == "":
			if err = session(ctx, b.Child); err == nil {
				some, err = since(ctx, opts.Snapshots, b.Before)
			}
		}
		if err != nil {
			return left, fmt.Errorf("take back the changes of bead %d: %w", b.Bead, err)
		}
		left = append(left, some...)
	}
	ended := slices.DeleteFunc(slices.Clone(status.Beads), func(b Bead) bool { return b.End == nil })
	more, err := takeBack(ctx, opts.Snapshots, ended)
	if left = append(left, more...); err != nil {
		return left, err
	}
	slices.Sort(left)
	r := &Runner{opts: opts, status: status}
	return slices.Compact(left), r.setTask(Cancelled, ReasonUndone)
}

// since returns the paths that differ from a snapshot.
func since(ctx context.Context, snapshots Snapshots, id string) (paths []string, err error) {
	now, err := snapshots.Take(ctx)
	if err != nil {
		return nil, err
	}
	changed, err := snapshots.Changes(ctx, id, now)
	for _, f := range changed {
		paths = append(paths, f.Path)
	}
	return paths, err
}

// ReasonUndone is the reason of a task that was taken back.
const ReasonUndone = "its changes were taken back"

// ReasonBeads begins the reason of a task that used all its beads.
const ReasonBeads = "all beads are used"

// budget describes what is used, with a warning if it passed one of its shares.
func (r *Runner) budget(bead, used int, cost float64) event.Budget {
	t := r.status.Task
	e := event.Budget{Task: t.Task, Bead: bead, Used: used, Max: t.TokenBudget, CostUSD: cost}
	for _, w := range warnings {
		if t.TokenBudget > 0 && used*100 >= w*t.TokenBudget && r.status.warned < w {
			e.Warning = w
		}
	}
	return e
}

// context returns what a bead is told.
func (r *Runner) context(ctx context.Context, b *Bead) Context {
	t := r.status.Task
	c := Context{
		Task: t, Step: r.status.step(b.Step), Criteria: r.status.criteria(b.Step), Bead: b.Bead, Finishing: b.Finishing,
		Remaining: max(0, t.TokenBudget-r.status.Used), Tried: tried(r.status.Beads, b.Step),
	}
	if b.Worktree != "" {
		for _, o := range r.status.open() {
			if step := r.status.step(o.Step); o.Bead != b.Bead && step != nil {
				c.Beside = append(c.Beside, *step)
			}
		}
	}
	var files []string
	input := t.Description
	if c.Step != nil {
		files, input = append(files, c.Step.Files...), c.Step.Title+"\n"+input
	}
	last := r.status.lastOf(b.Step)
	if last == nil {
		last = r.status.ended()
	}
	if last != nil {
		c.Previous = last
		if last.State != Committed && last.Step == b.Step {
			c.Errors = append(slices.Clone(last.End.Result.Errors), last.End.Failures...)
			c.Rethink = r.repeats(last.Step, last.End.Fingerprint) > 1
		}
		for _, f := range last.End.Result.Files {
			files = append(files, f.Path)
		}
	}
	if r.opts.Impact != nil {
		c.Graph = r.opts.Impact.Section(ctx, input, files, c.Errors)
	}
	return c
}

// repeats counts the last beads of a step since a resume that failed with this
// fingerprint.
func (r *Runner) repeats(step, fingerprint string) int {
	return r.count(step, func(end *event.BeadEnd) bool { return fingerprint != "" && end.Fingerprint == fingerprint })
}

// idle counts the last beads of a step since a resume that failed and changed nothing.
func (r *Runner) idle(step string) int {
	return r.count(step, func(end *event.BeadEnd) bool {
		return end.State != string(Committed) && len(end.Result.Files)+len(end.Conflicts) == 0
	})
}

// count counts the last beads of a step since a resume that match.
func (r *Runner) count(step string, match func(*event.BeadEnd) bool) (n int) {
	for i := len(r.status.Beads); i > r.status.resumed; i-- {
		switch b := r.status.bead(i); {
		case b.End == nil || b.Step != step:
		case !match(b.End):
			return n
		default:
			n++
		}
	}
	return n
}
