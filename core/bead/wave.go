package bead

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/event"
)

// Worktrees are copies of the workspace, in which beads work side by side. It is safe
// for concurrent use.
type Worktrees interface {
	// Available reports whether the workspace can have some.
	Available(ctx context.Context) bool
	// Create makes a worktree, in place of one of that name, and returns the snapshot
	// of its beginning, which it keeps. The worktree outlives the process.
	Create(ctx context.Context, name string) (base string, err error)
	// Take takes a snapshot of a worktree, and keeps it.
	Take(ctx context.Context, name string) (id string, err error)
	// Remove removes a worktree. What cannot be removed now is removed later.
	Remove(name string)
}

// wave returns the next beads: one, or several whose steps can be worked on at once.
func (r *Runner) wave(ctx context.Context, finishing bool) []event.BeadStart {
	t := r.status.Task
	steps := r.besides(ctx, finishing)
	left := max(0, t.TokenBudget-r.status.Used)
	share := left / 2
	if finishing || len(r.status.Beads)+len(steps) >= t.MaxBeads {
		share = left
	}
	if enough := share / (2 * reserveAnswer); t.TokenBudget > 0 && len(steps) > enough {
		steps = steps[:max(1, enough)]
	}
	var wave []event.BeadStart
	for i := range max(1, len(steps)) {
		start := event.BeadStart{Task: t.Task, Bead: len(r.status.Beads) + i + 1, Max: t.MaxBeads, Child: r.opts.NewID(), Finishing: finishing}
		if len(steps) > 0 {
			start.Step = steps[i].Name
		}
		if len(steps) > 1 {
			start.Worktree = fmt.Sprintf("task-%s-%d", t.Task, start.Bead)
		}
		if t.TokenBudget > 0 {
			start.Allowance = max(share/max(1, len(steps)), min(left, 2*reserveAnswer))
		}
		wave = append(wave, start)
	}
	return wave
}

// besides returns the steps that are worked on next: the first that is ready, and
// others that are predicted to change other files. A step that failed before, or of
// which nobody knows what it changes, is worked on alone.
func (r *Runner) besides(ctx context.Context, finishing bool) []event.TaskStep {
	t := r.status.Task
	steps := ready(t.Steps, r.status.Done())
	if len(steps) == 0 {
		return nil
	}
	most := min(t.Worktrees, t.MaxBeads-len(r.status.Beads))
	if finishing || most < 2 || len(steps) < 2 || r.opts.Trees == nil || !r.opts.Trees.Available(ctx) {
		return steps[:1]
	}
	var chosen []event.TaskStep
	var prints []footprint
	for i, s := range steps {
		if len(s.Files) == 0 || r.status.lastOf(s.Name) != nil {
			if i == 0 {
				return steps[:1]
			}
			continue
		}
		p := r.predict(ctx, s)
		if len(chosen) < most && !slices.ContainsFunc(prints, p.meets) {
			chosen, prints = append(chosen, s), append(prints, p)
		}
	}
	return chosen
}

// footprint is what a step is predicted to change, and what that may break.
type footprint struct{ files, affected []string }

func (r *Runner) predict(ctx context.Context, s event.TaskStep) footprint {
	p := footprint{files: s.Files}
	if r.opts.Impact != nil {
		p.affected = r.opts.Impact.Affected(ctx, s.Files)
	}
	return p
}

// meets reports whether two steps may change the same files, or one of them what the
// other may break.
func (p footprint) meets(o footprint) bool {
	return overlap(p.files, o.files) || overlap(p.files, o.affected) || overlap(p.affected, o.files)
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(some, func(a string) bool {
		return slices.ContainsFunc(others, func(b string) bool { return within(a, b) || within(b, a) })
	})
}

// within reports whether a path is another one, or below it. Of a pattern, what is
// before its first special character counts.
func within(name, dir string) bool {
	name, dir = plain(name), plain(dir)
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

func plain(name string) string {
	if i := strings.IndexAny(name, "*?["); i >= 0 {
		name = name[:strings.LastIndexByte(name[:i], '/')+1]
	}
	return path.Clean(name)
}

// begin prepares a bead.
func (r *Runner) begin(ctx context.Context, b *Bead) error {
	state := event.TaskState{Task: b.Task, Bead: b.Bead, State: string(Analysing)}
	if b.Worktree != "" {
		var err error
		if state.Snapshot, err = r.opts.Trees.Create(ctx, b.Worktree); err != nil {
			return fmt.Errorf("worktree of bead %d: %w", b.Bead, err)
		}
	}
	return r.emit(state)
}

// work runs the sessions of beads, all at once.
func (r *Runner) work(ctx context.Context, beads []*Bead) error {
	var all []Assignment
	for _, b := range beads {
		all = append(all, Assignment{
			Task: b.Task, Session: b.Child, Input: fmt.Sprintf("%s-%d", b.Task, b.Bead), Prompt: r.context(ctx, b).Prompt(), Rounds: r.status.Task.Rounds,
			Seq: b.seq, Meter: r.meter(b, b.Allowance), Worktree: b.Worktree, bead: b.Bead,
		})
	}
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, a := range all {
		wg.Go(func() { errs[i] = r.session(ctx, a) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the others are likely the same
		}
	}
	return nil
}

// session runs the session of a bead, beside others.
func (r *Runner) session(ctx context.Context, a Assignment) error {
	result, err := r.opts.Worker.Work(ctx, a)
	if err != nil {
		return err
	}
	state := event.TaskState{Task: a.Task, Bead: a.bead, State: string(Verifying), Result: &result}
	if a.Worktree != "" {
		state.State = string(Merging)
		state.Snapshot, err = r.opts.Trees.Take(ctx, a.Worktree)
	} else {
		state.Snapshot, err = r.opts.Snapshots.Take(ctx)
	}
	if err != nil {
		return fmt.Errorf("snapshot of the workspace: %w", err)
	}
	result.Done, result.Spent = Done(result.Response), a.Meter.Spent()
	result.Used, result.CostUSD = a.Meter.total()
	result.Response = clip(result.Response, 4*maxOutput)
	if result.Done { // also where the middle is left out
		result.Response = strings.TrimRight(result.Response, " \t\r\n")
	}
	result.Files = []event.FileChange{}
	if err = r.emit(state); err == nil && a.Worktree != "" {
		r.opts.Trees.Remove(a.Worktree) // the snapshot has it all
	}
	return err
}

// merge brings what a bead did in its worktree to the workspace, where it is verified
// as any other. If a file was changed there meanwhile, in the same lines or in a way
// that cannot be merged, nothing is: the step is worked on again.
func (r *Runner) merge(ctx context.Context, b *Bead) error {
	if !b.merging {
		if err := r.rollBack(ctx); err != nil {
			return err
		}
		before, err := r.opts.Snapshots.Take(ctx)
		if err != nil {
			return fmt.Errorf("snapshot of the workspace: %w", err)
		}
		return r.emit(event.TaskState{Task: b.Task, Bead: b.Bead, State: string(Merging), Result: b.Result, Snapshot: b.snapshot, Before: before})
	}
	conflicts, err := r.opts.Snapshots.Merge(ctx, b.base, b.snapshot)
	if err != nil {
		return fmt.Errorf("merge bead %d: %w", b.Bead, err)
	}
	after, err := r.opts.Snapshots.Take(ctx)
	if err != nil {
		return fmt.Errorf("snapshot of the workspace: %w", err)
	}
	if len(conflicts) == 0 {
		return r.emit(event.TaskState{Task: b.Task, Bead: b.Bead, State: string(Verifying), Result: b.Result, Snapshot: after})
	}
	end := event.BeadEnd{Task: b.Task, Bead: b.Bead, Result: *b.Result, After: after, Conflicts: conflicts, Reason: "not merged: " + conflicts[0]}
	if more := len(conflicts) - 1; more > 0 {
		end.Reason += fmt.Sprintf(" and %d more", more)
	}
	return r.end(b, end, []string{"not merged: " + strings.Join(conflicts[:min(len(conflicts), maxFiles)], ", ")}, "")
}

// rollBack takes back what the last bead did, if that is to be. It may be repeated.
func (r *Runner) rollBack(ctx context.Context) error {
	if last := r.status.ended(); last == nil || !last.End.RolledBack {
		return nil
	}
	_, err := takeBack(ctx, r.opts.Snapshots, r.status.sinceGreen())
	return err
}

// meter returns what counts the tokens of a bead; 0 is no limit besides that of the
// task.
func (r *Runner) meter(b *Bead, limit int) *Meter {
	if r.purse == nil {
		r.purse = &purse{used: r.status.Used, cost: r.status.CostUSD, limit: r.status.Task.TokenBudget, price: r.opts.Price}
		r.purse.settled = func(bead, used int, cost float64) { _ = r.emit(r.budget(bead, used, cost)) } // emit remembers the error
	}
	return &Meter{task: r.purse, bead: b.Bead, used: b.used, cost: b.cost, limit: cmp.Or(limit, r.purse.limit)}
}
