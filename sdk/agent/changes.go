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
		Excludes: []string{filepath.Join(info.Home, ".config", "git", "ignore")},
		Secret:   a.hidden.In,
		Note:     func(ctx context.Context, body event.Body) { s.Note(ctx, body) },
	})
	cfg.Watcher = s.changes
	s.takenBack.Store(true) // the record of a resumed session may have an undo
	cfg.Context = append(cfg.Context, undoNotice{s})
}

// UndoOptions say what to undo.
type UndoOptions struct {
	// Since is the number of an input: its changes and all later ones are taken
	// back. 0 is the last input that changed files.
	Since event.Seq
	// Redo takes the last undo back instead.
	Redo bool
	// Overwrite restores also files that were changed since, if the changes
	// cannot be merged. Otherwise they stay as they are.
	Overwrite bool
	DryRun    bool // only tell
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
	list, err := chosen(h, opts)
	if err != nil {
		return changes.Reverted{}, err
	}
	source := changes.SourceUndo
	if opts.Redo {
		source = changes.SourceRedo
	}
	return t.Revert(ctx, list, changes.RevertOptions{Source: source, Overwrite: opts.Overwrite, DryRun: opts.DryRun})
}

func chosen(h changes.History, opts UndoOptions) ([]changes.Change, error) {
	switch {
	case opts.Redo:
		return h.Undone()
	case opts.Since > 0:
		return h.Since(opts.Since)
	}
	return h.Last()
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
