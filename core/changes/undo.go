package changes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/snapshot"
)

// Turn is an input and what changed until the next one.
type Turn struct {
	Seq     event.Seq // of the input
	Input   string
	Changes []Change // in order
}

// Change is a recorded change of files.
type Change struct {
	Seq event.Seq
	event.FilesChanged
	undone bool
}

// Undone reports whether the change was taken back.
func (c Change) Undone() bool { return c.undone }

// History is what a session changed, turn by turn.
type History struct {
	Turns []Turn
	undos []Change // undos and redos, in order
}

// Read reads the history from the events of a session.
func Read(events iter.Seq2[event.Event, error]) (History, error) {
	var h History
	for e, err := range events {
		if err != nil {
			return h, err
		}
		switch b := e.Body.(type) {
		case event.User:
			h.Turns = append(h.Turns, Turn{Seq: e.Seq, Input: b.Content.Text()})
		case event.FilesChanged:
			h.add(Change{Seq: e.Seq, FilesChanged: b})
		}
	}
	return h, nil
}

func (h *History) add(c Change) {
	if c.Source != "" {
		for _, seq := range c.Undoes {
			h.mark(seq, true)
		}
		h.undos = append(h.undos, c)
		return
	}
	if len(h.Turns) == 0 {
		h.Turns = []Turn{{}}
	}
	last := &h.Turns[len(h.Turns)-1]
	last.Changes = append(last.Changes, c)
}

// mark marks a change as undone or not. What an undo took back is there again if
// the undo itself is undone.
func (h *History) mark(seq event.Seq, undone bool) {
	for i := range h.Turns {
		for j := range h.Turns[i].Changes {
			if c := &h.Turns[i].Changes[j]; c.Seq == seq {
				c.undone = undone
			}
		}
	}
	for i := range h.undos {
		if c := &h.undos[i]; c.Seq == seq {
			c.undone = undone
			for _, other := range c.Undoes {
				h.mark(other, !undone)
			}
		}
	}
}

// active returns the changes that are not undone.
func active(list []Change) []Change {
	return slices.DeleteFunc(slices.Clone(list), func(c Change) bool { return c.undone })
}

// TakenBack lists the paths that undos and redos changed since the last input,
// which the model does not know of.
func (h History) TakenBack() (paths []string) {
	var last event.Seq
	if n := len(h.Turns); n > 0 {
		last = h.Turns[n-1].Seq
	}
	for _, c := range h.undos {
		if c.Seq < last {
			continue
		}
		for _, f := range c.Files {
			if name := filepath.Join(c.Root, filepath.FromSlash(f.Path)); !slices.Contains(paths, name) {
				paths = append(paths, name)
			}
		}
	}
	return paths
}

// ErrNothing means that there is nothing to undo or redo.
var ErrNothing = errors.New("there are no changes of this session to take back")

// Last returns the changes of the last turn that has some to undo.
func (h History) Last() ([]Change, error) {
	for _, t := range slices.Backward(h.Turns) {
		if list := active(t.Changes); len(list) > 0 {
			return list, nil
		}
	}
	return nil, ErrNothing
}

// Since returns the changes of the turn whose input has the number seq, and of
// all later ones.
func (h History) Since(seq event.Seq) ([]Change, error) {
	i := slices.IndexFunc(h.Turns, func(t Turn) bool { return t.Seq == seq })
	if i < 0 {
		return nil, fmt.Errorf("the session has no input %d; `agent sessions diff` lists them", seq)
	}
	var list []Change
	for _, t := range h.Turns[i:] {
		list = append(list, active(t.Changes)...)
	}
	if len(list) == 0 {
		return nil, ErrNothing
	}
	return list, nil
}

// Undone returns what the last undo did that can be taken back.
func (h History) Undone() ([]Change, error) {
	var list []Change
	for _, c := range slices.Backward(h.undos) {
		switch {
		case c.undone || c.Source == SourceRedo:
			continue
		case len(list) > 0 && !slices.Equal(c.Undoes, list[0].Undoes):
			return list, nil
		}
		list = append(list, c) // an undo has one event for each root
	}
	if len(list) == 0 {
		return nil, errors.New("there is no undo to take back")
	}
	return list, nil
}

// What an event.FilesChanged without a call comes from.
const (
	SourceUndo = "undo"
	SourceRedo = "redo"
)

// Reverted is what a [Tracker.Revert] did, or would do.
type Reverted struct {
	Steps     []snapshot.Step     // with paths below the root that Roots names; no parents of others
	Roots     []string            // one for each step
	Conflicts []snapshot.Conflict // paths that stay as they are; absolute
	Events    []event.FilesChanged
}

// RevertOptions control a [Tracker.Revert].
type RevertOptions struct {
	Source    string // SourceUndo or SourceRedo
	Overwrite bool   // also files that were changed since, if they cannot be merged
	DryRun    bool   // change nothing
}

// Revert takes changes back, the last one first. What was changed since is kept:
// it is merged, or stays as it is, and is reported. No call may be under way. The
// caller adds the events to the session.
func (t *Tracker) Revert(ctx context.Context, list []Change, opts RevertOptions) (Reverted, error) {
	t.Begin(ctx)
	if err := wait(ctx, t.opened); err != nil {
		return Reverted{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.roots) < len(t.opts.Roots) {
		return Reverted{}, fmt.Errorf("changes to files were not recorded: %w", t.failed)
	}
	if t.running > 0 {
		return Reverted{}, errors.New("a tool call is under way; try again when it has ended")
	}
	var out Reverted
	for _, name := range rootsOf(list) {
		i := slices.IndexFunc(t.roots, func(r *root) bool { return r.path == name })
		if i < 0 {
			return out, fmt.Errorf("%s is not a directory of this workspace; run the command there", name)
		}
		if err := t.revertRoot(ctx, t.roots[i], list, opts, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// rootsOf lists the roots of changes.
func rootsOf(list []Change) (roots []string) {
	for _, c := range list {
		if !slices.Contains(roots, c.Root) {
			roots = append(roots, c.Root)
		}
	}
	return roots
}

// span is a series of changes with nothing in between.
type span struct{ before, after string }

// spans joins the changes of a root.
func spans(list []Change, root string) (all []span, seqs []event.Seq) {
	for _, c := range list {
		if c.Root != root {
			continue
		}
		seqs = append(seqs, c.Seq)
		if n := len(all); n > 0 && all[n-1].after == c.Before {
			all[n-1].after = c.After
		} else {
			all = append(all, span{c.Before, c.After})
		}
	}
	return all, seqs
}

// hasBelow reports whether there is a step or conflict below a directory, which
// says enough.
func hasBelow(dir string, steps []snapshot.Step, conflicts []snapshot.Conflict) bool {
	return slices.ContainsFunc(steps, func(s snapshot.Step) bool { return strings.HasPrefix(s.Path, dir+"/") }) ||
		slices.ContainsFunc(conflicts, func(c snapshot.Conflict) bool { return strings.HasPrefix(c.Path, dir+"/") })
}

// paths lists what changed.
func (r *root) paths(all []span) (paths []string, err error) {
	for _, s := range all {
		list, err := r.w.Changes(s.before, s.after)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			paths = append(paths, c.Path)
			if c.From != "" {
				paths = append(paths, c.From)
			}
		}
	}
	return paths, nil
}

func (t *Tracker) revertRoot(ctx context.Context, r *root, list []Change, opts RevertOptions, out *Reverted) error {
	all, seqs := spans(list, r.path)
	paths, err := r.paths(all)
	if err != nil {
		return err
	}
	before, err := r.w.Peek(ctx, paths)
	if err != nil {
		return err
	}
	for _, s := range slices.Backward(all) {
		p, err := r.w.Plan(ctx, s.after, s.before, opts.Overwrite)
		if err != nil {
			return err
		}
		conflicts := p.Conflicts
		if !opts.DryRun {
			more, err := r.w.Apply(ctx, p)
			if err != nil {
				return err
			}
			conflicts = append(conflicts, more...)
		}
		for _, step := range p.Steps {
			if !step.Dir || !hasBelow(step.Path, p.Steps, conflicts) {
				out.Steps, out.Roots = append(out.Steps, step), append(out.Roots, r.path)
			}
		}
		for _, c := range conflicts {
			c.Path = strings.TrimSuffix(r.path, "/") + "/" + c.Path
			out.Conflicts = append(out.Conflicts, c)
		}
	}
	if opts.DryRun {
		return nil
	}
	after, err := r.w.Peek(ctx, paths)
	if err != nil {
		return err
	}
	body, changed, err := t.describe(ctx, r, before, after)
	if err != nil || !changed {
		return err
	}
	body.Source, body.Undoes = opts.Source, seqs
	out.Events = append(out.Events, body)
	return nil
}
