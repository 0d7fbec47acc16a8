package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/snapshot"
)

// State is what changed in a worktree.
type State struct {
	ID    string // of a snapshot
	Files []event.FileChange
	// Left are files that may have changed, and are not part of the state: a
	// snapshot does not hold them.
	Left []snapshot.Left
}

// maxDiffs limits the diffs of a state, in bytes.
const maxDiffs = 4 << 20

// options are those of the snapshots.
func (w *Worktree) options() changes.Options {
	return changes.Options{Dir: changes.Dir(w.opts.Home), Excludes: w.opts.Excludes, Secret: w.opts.Secret}
}

// take takes a snapshot of the worktree.
func (w *Worktree) take(ctx context.Context) (snap snapshot.Snapshot, err error) {
	if w.w == nil {
		if w.w, err = changes.Open(w.options(), w.rec.Dir, w.rec.Root); err != nil {
			return snap, err
		}
	}
	return w.w.Take(ctx, snapshot.TakeOptions{Paths: w.rec.Forced})
}

func (w *Worktree) stamp(rel string) stamp {
	info, err := os.Lstat(filepath.Join(w.rec.Dir, filepath.FromSlash(rel)))
	if err != nil {
		return stamp{Size: -1}
	}
	return stamp{info.Size(), info.ModTime().UTC()}
}

// State returns what changed since the worktree was made.
func (w *Worktree) State(ctx context.Context) (State, error) {
	snap, err := w.take(ctx)
	if err != nil {
		return State{}, err
	}
	if err := w.w.Keep(w.owner(), snap.ID); err != nil {
		return State{}, err
	}
	list, err := w.w.Changes(w.rec.Base, snap.ID)
	if err != nil {
		return State{}, err
	}
	s := State{ID: snap.ID}
	if s.Files, err = changes.Files(ctx, w.w, list, maxDiffs); err != nil {
		return State{}, err
	}
	reasons := map[string]string{}
	for _, l := range snap.Left {
		reasons[l.Path] = l.Reason
	}
	for rel := range w.rec.Left {
		if reasons[rel] == "" {
			reasons[rel] = "it was not kept when the worktree was made"
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(reasons)) {
		if was, known := w.rec.Left[rel]; !known || was != w.stamp(rel) {
			s.Left = append(s.Left, snapshot.Left{Path: rel, Reason: reasons[rel]})
		}
	}
	return s, nil
}

// Apply makes the changes of a state in the workspace. What changed there
// meanwhile is merged; where that is impossible, the file stays as it is, unless
// overwrite is set, and is returned. If all is applied, later states begin with
// this one.
func (w *Worktree) Apply(ctx context.Context, state string, overwrite bool) (conflicts []snapshot.Conflict, err error) {
	to, err := changes.Open(w.options(), w.rec.Root, w.rec.Root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	plan, err := to.Plan(ctx, w.rec.Base, state, func(string) bool { return overwrite })
	if err != nil {
		return nil, err
	}
	more, err := to.Apply(ctx, plan)
	conflicts = append(plan.Conflicts, more...)
	if err != nil || len(conflicts) > 0 {
		return conflicts, err
	}
	w.rec.Base = state
	return nil, w.save()
}

// Branch makes a branch of the worktree in the repository of the workspace, and
// returns its commit. Without a name it is that of the worktree's own branch.
func (w *Worktree) Branch(ctx context.Context, name, message string) (branch, commit string, err error) {
	if w.rec.Branch == "" {
		return "", "", fmt.Errorf("%s is not in a git repository: its worktrees cannot become branches", w.rec.Root)
	}
	repo, err := openRepository(ctx, w.rec.Root)
	if err != nil {
		return "", "", err
	}
	if repo == nil {
		return "", "", fmt.Errorf("%s is no longer in a git repository", w.rec.Root)
	}
	if name == "" {
		name = w.rec.Branch
	}
	commit, err = repo.branch(ctx, w.rec.Top, name, message)
	return name, commit, err
}
