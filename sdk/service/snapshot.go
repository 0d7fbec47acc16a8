package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// The codes of the warnings that a session continues on another machine, and that it could
// not, as its files are not saved any more.
const (
	codeMoved   = "moved"
	codeUnsaved = "unsaved"
)

// saveWithin is the default of [WorkerOptions].SaveWithin.
const saveWithin = 5 * time.Minute

// save takes a snapshot of the session's own workspace at the end of a turn. Without one
// the session waits for this machine, so that no work is lost silently. The entry is not
// written yet; then forget what it returns.
func (t *turn) save(ctx context.Context) (outdated []workspace.Pack) {
	if t.session.Dir == "" || !t.session.Workspace.Own() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, t.worker.opts.SaveWithin)
	defer cancel()
	before := t.session.Snapshot
	var last *workspace.Saved
	if before != nil && before.Files != "" {
		last, outdated = &before.Saved, before.Packs
	}
	store := t.worker.opts.Engine
	var added []workspace.Pack
	saved, err := t.worker.opts.Workspaces.Save(within, t.tenant, t.id, last, func(ctx context.Context, name string, content io.Reader) error {
		added = append(added, workspace.Pack{Name: name})
		return store.PutOutput(ctx, t.tenant, t.id, core.HandlePrefix+name, content)
	})
	if err != nil {
		t.unsaved(ctx, before != nil, err)
		return slices.Concat(outdated, added)
	}
	t.session.Snapshot = &Snapshot{*saved, t.log.newest()}
	return slices.DeleteFunc(slices.Clone(outdated), func(p workspace.Pack) bool { return slices.Contains(saved.Packs, p) })
}

// unsaved says that a session has no snapshot: in its log, too, if it had one.
func (t *turn) unsaved(ctx context.Context, had bool, why error) {
	t.session.Snapshot = nil
	err := why
	if had {
		text := fmt.Sprintf("The files of the session could not be saved, so it continues on this machine only: %v", why)
		err = errors.Join(err, t.log.append(ctx, t.id, event.Warning{Code: codeUnsaved, Message: text}))
	}
	t.worker.opts.Logger.WarnContext(ctx, "the workspace has no snapshot: other machines cannot continue the session", "session", t.id, "tenant", t.tenant, "error", err)
}

// forget removes packs that the entry does not name any more.
func (t *turn) forget(ctx context.Context, outdated []workspace.Pack) {
	for _, p := range outdated {
		if err := t.worker.opts.Engine.RemoveOutput(ctx, t.tenant, t.id, core.HandlePrefix+p.Name); err != nil {
			t.worker.opts.Logger.WarnContext(ctx, "a part of an old snapshot cannot be removed", "session", t.id, "tenant", t.tenant, "error", err)
		}
	}
}

// leave saves the workspace in the middle of a turn, when this process ends, as long as
// the lease lasts.
func (t *turn) leave(ctx context.Context, why error) {
	if ctx.Err() == nil || errors.Is(why, core.ErrFenced) || !t.hold.held() {
		return
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), *t.hold.until.Load())
	defer cancel()
	outdated := t.save(ctx)
	if errors.Join(t.log.grouped.Sync(ctx), t.update(ctx, StateQueued)) == nil {
		t.forget(ctx, outdated)
	}
}

// bring makes the workspace of a session here that is on a machine which is away: from its
// snapshot, or as at first if it has had no turn. The log says so.
func (t *turn) bring(ctx context.Context, root *workspace.Root) (err error) {
	last := t.session.Snapshot
	if last == nil || !t.session.Workspace.Own() {
		return fmt.Errorf("%w, and has no snapshot: start that machine, or give the workers the same directory for workspaces", workspace.ErrElsewhere)
	}
	if away, err := t.away(ctx); err != nil || !away {
		return errors.Join(err, workspace.ErrElsewhere)
	}
	dir := ""
	if last.Files == "" {
		if err = root.Delete(t.tenant, t.id); err == nil {
			dir, err = root.Prepare(ctx, t.tenant, t.id, t.session.Workspace)
		}
	} else {
		store := t.worker.opts.Engine.Store(t.tenant, t.id)
		dir, err = root.Restore(ctx, t.tenant, t.id, t.session.Workspace, last.Saved, func(ctx context.Context, name string) (io.ReadCloser, error) {
			return store.Open(ctx, core.HandlePrefix+name)
		})
	}
	if err == nil {
		err = t.say(ctx, *last)
	}
	if err != nil {
		return err
	}
	t.session.Place, t.session.Dir = root.ID(), dir
	return t.update(ctx, StateRunning)
}

// away reports whether nobody has the session's workspace: for a while, so that a machine
// that restarts finds it again, or since the lease of its worker ended.
func (t *turn) away(ctx context.Context) (bool, error) {
	term := t.hold.lease.Term()
	for end := time.Now().Add(term / 6); ; pause(ctx, term/24) {
		present, err := t.worker.opts.Engine.IsPresent(ctx, t.session.Place)
		if err != nil || present {
			return false, err
		}
		if t.cut || time.Now().After(end) {
			return true, nil
		}
	}
}

// say records whose files the session continues with; also for the model, if it changed
// files since.
func (t *turn) say(ctx context.Context, last Snapshot) error {
	for _, err := range t.log.Replay(ctx, 0) {
		if err != nil {
			return err
		}
	}
	text := "The session continues on another machine, with the files of the end of its last turn. What git ignores is not among them."
	if last.Files == "" {
		text = "The session continues on another machine, with its directory as it was before the first turn."
	}
	lost := t.log.lastAct() > last.After
	if lost {
		text += " What tools changed in files after that is lost."
	}
	if len(last.Left) > 0 {
		text += fmt.Sprintf(" These files are missing, and perhaps others: %q.", last.Left)
	}
	if err := t.log.append(ctx, t.id, event.Warning{Code: codeMoved, Message: text}); err != nil || !lost {
		return err
	}
	return t.log.append(ctx, t.id, event.Queued{Source: "system", Content: model.TextParts(text + " Look at the files before you continue.")})
}
