package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/worktree"
)

// taskTrees implements [bead.Worktrees].
type taskTrees struct {
	agent     *Agent
	snapshots *taskSnapshots

	mu   sync.Mutex
	used map[string]*worktree.Worktree
}

// options are those of a worktree. It is kept, so that a bead whose process is killed
// continues in it.
func (t *taskTrees) options(name string) worktree.Options {
	a := t.agent
	return worktree.Options{Root: a.env.Info().Dir, Name: name, Keep: true, Home: a.opts.Home, Excludes: a.excludes(), Secret: a.hidden.In}
}

// Available implements [bead.Worktrees]: without git, everything would be copied, also
// what need not be.
func (t *taskTrees) Available(ctx context.Context) bool {
	return worktree.InGit(ctx, t.agent.env.Info().Dir)
}

// Create implements [bead.Worktrees].
func (t *taskTrees) Create(ctx context.Context, name string) (base string, err error) {
	t.agent.sweep() // one that was not complete
	w, err := worktree.Create(ctx, t.options(name))
	if err == nil {
		t.mu.Lock()
		t.used[name] = w
		t.mu.Unlock()
	} else if errors.Is(err, worktree.ErrExists) { // the process was killed before that was recorded
		w, err = t.open(name)
	}
	if err != nil {
		return "", err
	}
	return w.Base(), t.snapshots.w.Keep(t.snapshots.owner, w.Base())
}

// open returns a worktree, also one of an earlier process.
func (t *taskTrees) open(name string) (*worktree.Worktree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.used[name]; w != nil {
		return w, nil
	}
	w, err := worktree.Open(t.options(name))
	if err == nil {
		t.used[name] = w
	}
	return w, err
}

// Take implements [bead.Worktrees].
func (t *taskTrees) Take(ctx context.Context, name string) (id string, err error) {
	w, err := t.open(name)
	if err != nil {
		return "", err
	}
	s, err := w.State(ctx)
	if err != nil {
		return "", err
	}
	return s.ID, t.snapshots.w.Keep(t.snapshots.owner, s.ID)
}

// Remove implements [bead.Worktrees].
func (t *taskTrees) Remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.used[name]; w != nil {
		delete(t.used, name)
		if err := w.Remove(); err != nil {
			t.agent.opts.Logger.Debug("the worktree of a bead is not removed", "error", err)
		}
	}
}

// close ends the use of the worktrees, and removes those that are not needed any more,
// also of earlier processes: a sweep leaves alone what belongs to a running task.
func (t *taskTrees) close(s bead.Status) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.used {
		err = errors.Join(err, w.Close())
	}
	kept, listErr := worktree.List(t.agent.opts.Home, t.agent.env.Info().Dir)
	err = errors.Join(err, listErr)
	for _, i := range kept {
		if taskOf(i.Name) == s.Task.Task {
			err = errors.Join(err, sweepTree(t.agent.opts.Home, i, s))
		}
	}
	return err
}

// refusal returns why a path in the workspace is not changed by what is merged.
func (a *Agent) refusal(ctx context.Context, path string, remove bool) string {
	return a.Refuses(ctx, filepath.Join(a.env.Info().Dir, filepath.FromSlash(path)), remove)
}

// sweepTasks removes the worktrees of tasks that no process works on, unless they are
// needed when the task is resumed.
func sweepTasks(ctx context.Context, home string) error {
	kept, err := worktree.List(home, "")
	for _, i := range kept {
		id := taskOf(i.Name)
		if id == "" || TaskRunning(home, id) {
			continue
		}
		if s, statusErr := TaskStatus(ctx, home, id); statusErr == nil { // else it is the user's
			err = errors.Join(err, sweepTree(home, i, s))
		}
	}
	return err
}

// sweepTree removes a worktree of a task unless a bead has yet to work in it, or another
// process removes it.
func sweepTree(home string, i worktree.Info, s bead.Status) error {
	if working(s, i.Name) {
		return nil
	}
	w, err := worktree.Open(worktree.Options{Root: i.Root, Name: i.Name, Home: home})
	if err == nil {
		err = w.Remove()
	}
	if err != nil && !errors.Is(err, worktree.ErrInUse) {
		return fmt.Errorf("worktree %s: %w", i.Name, err)
	}
	return nil
}

// taskOf returns the task that a worktree is named after, or "".
func taskOf(name string) string {
	rest, ok := strings.CutPrefix(name, taskPrefix)
	i := strings.LastIndexByte(rest, '-')
	if !ok || i < 1 {
		return ""
	}
	if _, err := strconv.Atoi(rest[i+1:]); err != nil {
		return ""
	}
	return rest[:i]
}

// working reports whether a bead has yet to work in a worktree.
func working(s bead.Status, name string) bool {
	return s.Reason != bead.ReasonUndone && slices.ContainsFunc(s.Beads, func(b bead.Bead) bool {
		return b.Worktree == name && (b.State == bead.Planned || b.State == bead.Analysing || b.State == bead.Running)
	})
}
