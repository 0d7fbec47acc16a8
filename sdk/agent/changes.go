package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

// watch makes a recorded session on this machine tell what its calls change.
func (a *Agent) watch(cfg *core.Config, s *Session) {
	if s.journal == nil || a.opts.Env != nil || a.opts.NoSnapshots {
		return
	}
	info := a.env.Info()
	s.changes = changes.New(changes.Options{
		Session: cfg.ID, Roots: info.Roots, Dir: changes.Dir(a.opts.Home),
		Excludes: a.excludes(),
		Secret:   a.hidden.In,
		Symbols:  a.opts.Symbols,
		Note:     func(ctx context.Context, body event.Body) { s.Note(ctx, body) },
	})
	cfg.Watcher = s.changes
	cfg.Context = append(cfg.Context, undoNotice{s})
}

// held reports whether a snapshot of a session holds files.
func (a *Agent) held(ctx context.Context, session string, files []string) bool {
	a.mu.Lock()
	n := a.nodes[session]
	a.mu.Unlock()
	if n == nil {
		return false
	}
	n.mu.Lock()
	t, ok := n.cfg.Watcher.(*changes.Tracker)
	n.mu.Unlock()
	return ok && t.Holds(ctx, files)
}

// excludes are the user's rules of what git ignores everywhere.
func (a *Agent) excludes() []string {
	return []string{filepath.Join(a.env.Info().Home, ".config", "git", "ignore")}
}

// UndoOptions say what to undo.
type UndoOptions struct {
	// Since is the number of an input: its changes and all later ones are taken
	// back. 0 is the last input that changed files.
	Since event.Seq
	// Redo takes the last undo back instead.
	Redo bool
	// Restore brings the files to what they were before the input Since, or, if it
	// is 0, after the last one: it also makes again what was taken back of the
	// changes before.
	Restore bool
	// Overwrite decides about a file, absolute, that was changed since and cannot be
	// merged: the later changes are lost if it returns true. Nil keeps them.
	Overwrite func(path string) bool
	DryRun    bool // only tell
}

// History returns the session's inputs, and what the tool calls of each changed in
// files.
func (s *Session) History(ctx context.Context) (changes.History, error) {
	if s.journal == nil {
		return changes.History{}, errors.New("this session is not recorded")
	}
	return changes.Read(s.journal.Replay(ctx, 0))
}

// Undo takes back what the session's tool calls changed in files. What the user
// changed since is merged or stays. It must not be called while an input is being
// processed.
func (s *Session) Undo(ctx context.Context, opts UndoOptions) (changes.Reverted, error) {
	if s.changes == nil {
		return changes.Reverted{}, errors.New("changes to files are not recorded in this session")
	}
	out, err := revert(ctx, s.changes, s.journal, opts)
	for _, body := range out.Events {
		s.Note(ctx, body)
		s.takenBack.Store(true)
	}
	return out, err
}

func revert(ctx context.Context, t *changes.Tracker, j *store.Journal, opts UndoOptions) (changes.Reverted, error) {
	h, err := changes.Read(j.Replay(ctx, 0))
	if err != nil {
		return changes.Reverted{}, err
	}
	o := changes.RevertOptions{Source: changes.SourceUndo, Overwrite: opts.Overwrite, DryRun: opts.DryRun}
	var list []changes.Change
	switch {
	case opts.Restore:
		o.Source = changes.SourceRestore
		if o.Again, err = h.Until(opts.Since); err == nil && opts.Since > 0 {
			list, err = h.Since(opts.Since)
		}
		if errors.Is(err, changes.ErrNothing) && len(o.Again) > 0 {
			err = nil
		} else if err == nil && len(list)+len(o.Again) == 0 {
			err = changes.ErrNothing
		}
	case opts.Redo:
		o.Source = changes.SourceRedo
		list, err = h.Undone()
	case opts.Since > 0:
		list, err = h.Since(opts.Since)
	default:
		list, err = h.Last()
	}
	if err != nil {
		return changes.Reverted{}, err
	}
	return t.Revert(ctx, list, o)
}

// UndoSession is [Session.Undo] for a session below home, a Home of [Options], that
// is not open.
func UndoSession(ctx context.Context, home, id string, opts UndoOptions) (out changes.Reverted, err error) {
	j, err := store.Open(SessionsDir(home), id, store.Options{})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var last event.Seq
	var roots []string
	for e, err := range j.Replay(ctx, 0) {
		if err != nil {
			return out, err
		}
		last = e.Seq
		if b, ok := e.Body.(event.FilesChanged); ok && !slices.Contains(roots, b.Root) {
			roots = append(roots, b.Root)
		}
	}
	t := changes.New(changes.Options{Session: id, Roots: roots, Dir: changes.Dir(home)})
	defer func() { err = errors.Join(err, t.Close()) }()
	out, err = revert(ctx, t, j, opts)
	for _, body := range out.Events {
		last++
		e := event.Event{V: event.Version, Seq: last, Time: time.Now(), Session: id, Body: body}
		err = errors.Join(err, j.Append(ctx, e))
	}
	return out, errors.Join(err, j.Sync(ctx))
}

// seeUndo takes a record from which a session is rebuilt: only one with an undo is read
// again for the notice.
func (s *Session) seeUndo(e event.Event) {
	if b, ok := e.Body.(event.FilesChanged); ok && b.Source != "" {
		s.takenBack.Store(true)
	}
}

// undoNotice tells the model of files that the user took back. It is asked just
// before the model is called: the first snapshot is taken meanwhile.
type undoNotice struct{ s *Session }

// Context implements [core.ContextSource].
func (n undoNotice) Context(ctx context.Context, _ core.ContextRequest) ([]core.Block, error) {
	n.s.changes.Begin(ctx)
	if !n.s.takenBack.Swap(false) {
		return nil, nil
	}
	h, err := changes.Read(n.s.journal.Replay(ctx, 0))
	paths := h.TakenBack()
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	const most = 50
	list := strings.Join(paths[:min(len(paths), most)], "\n")
	if len(paths) > most {
		list += fmt.Sprintf("\n… and %d more", len(paths)-most)
	}
	return []core.Block{{Source: "undo", Trusted: true, Text: "The user took back changes to these files. Read them again before you rely on what is in them:\n" + list}}, nil
}
