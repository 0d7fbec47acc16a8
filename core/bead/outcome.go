package bead

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// maxListed limits the files of a bead that are recorded.
const maxListed = 200

// verify checks what a bead did and ends it.
func (r *Runner) verify(ctx context.Context, b *Bead) error {
	if len(b.Criteria)+len(b.Guards) > 0 { // it was caught while it was verified
		again := event.TaskState{Task: b.Task, Bead: b.Bead, State: string(Verifying), Result: b.Result, Snapshot: b.snapshot}
		if err := r.emit(again); err != nil {
			return err
		}
	}
	own, err := r.opts.Snapshots.Changes(ctx, b.Before, b.snapshot)
	if err != nil {
		return fmt.Errorf("changes of bead %d: %w", b.Bead, err)
	}
	all, err := r.opts.Snapshots.Changes(ctx, r.status.Task.Base, b.snapshot)
	if err != nil {
		return fmt.Errorf("changes of the task: %w", err)
	}
	end := event.BeadEnd{Task: b.Task, Bead: b.Bead, Result: *b.Result, After: b.snapshot}
	end.Result.Files, end.Result.Left = own[:min(len(own), maxListed)], max(0, len(own)-maxListed)
	if end.Result.Files == nil {
		end.Result.Files = []event.FileChange{}
	}
	verdict, failures, err := r.guards(ctx, b, all)
	if err != nil {
		return err
	}
	if verdict == FailTestChange || verdict == AskTestChange {
		return r.end(b, end, failures, verdict)
	}
	if failures, err = r.criteria(ctx, b, all); err != nil {
		return err
	}
	last := r.lastStep(b)
	if len(failures) == 0 && len(all) == 0 {
		failures = []string{"nothing was changed: the criteria say nothing about the task"}
	}
	if len(failures) == 0 && last && r.opts.Review != nil {
		if failures, err = r.opts.Review.Review(ctx, r.status.Task, all, r.meter(b, 0)); err != nil {
			return fmt.Errorf("review: %w", err)
		}
	}
	end.Complete = len(failures) == 0 && last
	if len(failures) == 0 { // the commands may have changed files, too
		if verdict, failures, err = r.guardAgain(ctx, b, &end); err != nil {
			return err
		}
		end.Complete = end.Complete && len(failures) == 0
	}
	return r.end(b, end, failures, verdict)
}

// guardAgain looks at the workspace after the criteria were met.
func (r *Runner) guardAgain(ctx context.Context, b *Bead, end *event.BeadEnd) (verdict string, failures []string, err error) {
	after, err := r.opts.Snapshots.Take(ctx)
	if err != nil || after == b.snapshot {
		return "", nil, err
	}
	all, err := r.opts.Snapshots.Changes(ctx, r.status.Task.Base, after)
	if err != nil {
		return "", nil, err
	}
	end.After = after
	return r.guards(ctx, b, all)
}

// lastStep reports whether no step of the plan is left after a bead.
func (r *Runner) lastStep(b *Bead) bool {
	done := r.status.Done()
	done[b.Step] = true
	return len(ready(r.status.Task.Steps, done)) == 0
}

// guards looks for changed tests and criteria. The verdict is "" if there are none
// that matter.
func (r *Runner) guards(ctx context.Context, b *Bead, changed []event.FileChange) (verdict string, failures []string, err error) {
	t := r.status.Task
	var paths []string
	for _, f := range changed {
		paths = append(paths, f.Path)
	}
	found := append(guardTests(changed), guardCriteria(t.Sealed, Seal(r.opts.Tree, allCriteria(t), paths), changed)...)
	if len(found) == 0 {
		return "", nil, nil
	}
	action := t.TestChange
	if action == AskTestChange && r.opts.Allow != nil && r.opts.Allow(ctx, found) {
		action = AllowTestChange
	}
	for _, g := range found {
		g.Task, g.Bead, g.Action = t.Task, b.Bead, action
		if err := r.emit(g); err != nil {
			return "", nil, err
		}
		text := "guard: " + g.Kind + ": " + g.Path
		if g.Detail != "" {
			text += ": " + g.Detail
		}
		failures = append(failures, text)
	}
	if action == AllowTestChange {
		return "", nil, ctx.Err()
	}
	return action, failures, ctx.Err()
}

// criteria checks those of a bead. Before the last step of a plan these are only the
// step's own, and the tests that the graph selects.
func (r *Runner) criteria(ctx context.Context, b *Bead, changed []event.FileChange) ([]string, error) {
	t := r.status.Task
	list := t.Criteria
	if !r.lastStep(b) {
		list = nil
		for _, c := range t.Criteria {
			if c.Kind == DoneMarker {
				list = append(list, c)
			}
		}
	}
	if s := r.status.step(b.Step); s != nil {
		list = append(list[:len(list):len(list)], s.Criteria...)
	}
	var paths []string
	for _, f := range changed {
		paths = append(paths, f.Path)
	}
	if r.opts.Impact != nil && len(paths) > 0 {
		for i, command := range r.opts.Impact.Tests(ctx, paths) {
			if sameTool(command, t.Criteria) {
				list = append(list[:len(list):len(list)], event.TaskCriterion{Name: fmt.Sprintf("%s-%d", impactTests, i+1), Kind: impactTests, Command: command})
			}
		}
	}
	v := verification{tree: r.opts.Tree, exec: r.opts.Exec, response: b.Result.Response, report: func(c event.Criterion) error {
		c.Task, c.Bead = t.Task, b.Bead
		return r.emit(c)
	}}
	failures, err := v.check(ctx, list)
	if err == nil {
		err = ctx.Err() // what a cancelled command says proves nothing
	}
	return failures, err
}

// sameTool reports whether a command is one of a program that also completes the task.
func sameTool(command string, criteria []event.TaskCriterion) bool {
	for _, c := range criteria {
		if decides(c) && firstWord(c.Command) == firstWord(command) {
			return true
		}
	}
	return false
}

func firstWord(command string) (word string) {
	_, _ = fmt.Sscan(command, &word) // "" for an empty one
	return word
}

// end decides what becomes of a bead.
func (r *Runner) end(b *Bead, end event.BeadEnd, failures []string, guard string) error {
	end.Failures, end.Fingerprint = failures, Fingerprint(failures)
	end.DurationMS = time.Since(b.Started).Milliseconds()
	idle := 0
	if len(end.Result.Files)+len(end.Conflicts) == 0 {
		idle = r.idle(b.Step) + 1
	}
	same := r.repeats(b.Step, end.Fingerprint) + 1
	state := Retrying
	switch {
	case len(failures) == 0:
		state = Committed
	case guard == AskTestChange:
		state, end.Reason = Blocked, failures[0]+"; to accept it: agent task resume --on-test-change allow"
	case idle > 1:
		state, end.Reason = Blocked, "two beads changed nothing"
	case same > 2:
		state, end.Reason = Blocked, "the same errors came three times"
	case end.Result.Spent && (b.Finishing || b.Bead >= r.status.Task.MaxBeads):
		state, end.Reason = Exhausted, "the tokens are used up"
	}
	end.State = string(state)
	// next does it, so that a verification never sees what is half taken back.
	end.RolledBack = guard == FailTestChange || state == Retrying && r.status.Task.Rollback
	return r.emit(end)
}
