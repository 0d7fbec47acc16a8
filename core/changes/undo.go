package changes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/snapshot"
)

// Turn is an input and what changed until the next one.
type Turn struct {
	Seq     event.Seq // of the input
	Time    time.Time
	Input   string   // without what context sources added
	Changes []Change // in order
	Rewound bool     // it is no longer part of the conversation
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
			h.Turns = append(h.Turns, Turn{Seq: e.Seq, Time: e.Time, Input: inputText(b.Content)})
		case event.Rewound:
			for i := range h.Turns {
				h.Turns[i].Rewound = h.Turns[i].Rewound || h.Turns[i].Seq >= b.Input
			}
		case event.FilesChanged:
			h.add(Change{Seq: e.Seq, FilesChanged: b})
		}
	}
	return h, nil
}

// inputText returns what the user entered.
func inputText(parts model.Parts) string {
	var own model.Parts
	for i, p := range parts {
		if t, ok := p.(model.Text); ok && (i == 0 || !strings.HasPrefix(t.Text, "<context source=")) {
			own = append(own, t)
		}
	}
	return own.Text()
}

func (h *History) add(c Change) {
	if c.Source != "" {
		for _, seq := range c.Undoes {
			h.toggle(seq)
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

// toggle notes that a change was taken back, or made again. What an undo took back
// is there again if the undo itself is undone.
func (h *History) toggle(seq event.Seq) {
	for i := range h.Turns {
		for j := range h.Turns[i].Changes {
			if c := &h.Turns[i].Changes[j]; c.Seq == seq {
				c.undone = !c.undone
			}
		}
	}
	for i := range h.undos {
		if c := &h.undos[i]; c.Seq == seq {
			c.undone = !c.undone
			for _, other := range c.Undoes {
				h.toggle(other)
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

// index returns the index of the turn whose input has the number seq.
func (h History) index(seq event.Seq) (int, error) {
	i := slices.IndexFunc(h.Turns, func(t Turn) bool { return t.Seq == seq })
	if i < 0 {
		return 0, fmt.Errorf("the session has no input %d; `agent sessions diff` lists them", seq)
	}
	return i, nil
}

// Since returns the changes of the turn whose input has the number seq, and of
// all later ones.
func (h History) Since(seq event.Seq) ([]Change, error) {
	i, err := h.index(seq)
	if err != nil {
		return nil, err
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

// Until returns the changes before the input with the number seq, or all if it is
// 0, that were taken back.
func (h History) Until(seq event.Seq) ([]Change, error) {
	i, err := len(h.Turns), error(nil)
	if seq > 0 {
		if i, err = h.index(seq); err != nil {
			return nil, err
		}
	}
	var list []Change
	for _, t := range h.Turns[:i] {
		for _, c := range t.Changes {
			if c.undone {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// Undone returns what the last undo did that can be taken back.
func (h History) Undone() ([]Change, error) {
	var list []Change
	for _, c := range slices.Backward(h.undos) {
		switch {
		case c.undone || c.Source == SourceRedo: // a restore counts as an undo
			continue
		case len(list) > 0 && (c.Seq+1 != list[len(list)-1].Seq || slices.Contains(rootsOf(list), c.Root)):
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
	SourceUndo    = "undo"
	SourceRedo    = "redo"
	SourceRestore = "restore"
)

// Reverted is what a [Tracker.Revert] did, or would do.
type Reverted struct {
	Steps     []snapshot.Step     // with paths below the root that Roots names; no parents of others
	Roots     []string            // one for each step
	Conflicts []snapshot.Conflict // paths that stay as they are; absolute
	// Left is what snapshots do not hold, although it changed or, of a repository
	// in the workspace, may have. It stays as it is. Paths are absolute.
	Left   []snapshot.Left
	Events []event.FilesChanged
}

// RevertOptions control a [Tracker.Revert].
type RevertOptions struct {
	Source string // SourceUndo, SourceRedo or SourceRestore
	// Overwrite decides about a file, absolute, that was changed since and cannot be
	// merged: the later changes are lost if it returns true. Nil keeps them.
	Overwrite func(path string) bool
	Again     []Change // to make again afterwards
	DryRun    bool     // change nothing
}

// Revert takes changes back, the last one first, and makes others again. What was changed since is kept:
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
	for _, name := range rootsOf(slices.Concat(list, opts.Again)) {
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

func (r *root) abs(name string) string { return filepath.Join(r.path, filepath.FromSlash(name)) }

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

// addLeft adds what snapshots left out.
func (o *Reverted) addLeft(r *root, s span) error {
	list, err := r.w.LeftOut(s.before, s.after)
	if err != nil {
		return err
	}
	repositories, err := r.w.Repositories(s.after)
	for _, l := range append(list, repositories...) {
		l.Path = r.abs(l.Path)
		if !slices.ContainsFunc(o.Left, func(other snapshot.Left) bool { return other.Path == l.Path }) {
			o.Left = append(o.Left, l)
		}
	}
	return err
}

func (t *Tracker) revertRoot(ctx context.Context, r *root, list []Change, opts RevertOptions, out *Reverted) error {
	all, seqs := spans(list, r.path)
	slices.Reverse(all)
	for i, s := range all {
		all[i] = span{s.after, s.before}
	}
	again, more := spans(opts.Again, r.path)
	all, seqs = append(all, again...), append(seqs, more...)
	paths, err := r.paths(all)
	if err != nil {
		return err
	}
	before, err := r.w.Peek(ctx, paths)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := out.addLeft(r, s); err != nil {
			return err
		}
		p, err := r.w.Plan(ctx, s.before, s.after, func(name string) bool {
			return opts.Overwrite != nil && opts.Overwrite(r.abs(name))
		})
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
			c.Path = r.abs(c.Path)
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
	body.Source, body.Undoes, body.Unrecorded = opts.Source, seqs, nil
	out.Events = append(out.Events, body)
	return nil
}
