package agent

import (
	"context"
	"errors"

	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

// ForkSession copies the events of session id below home, a Home of [Options], up
// to the number at into a new session, and returns its ID; 0 copies all. Resuming
// the copy leaves the original unchanged. Errors are those of [store.Dirs.Fork].
func ForkSession(ctx context.Context, home, id string, at event.Seq) (string, error) {
	fork := newID()
	if err := dirs(home).Fork(ctx, id, fork, at); err != nil {
		return "", err
	}
	return fork, changes.Share(home, id, fork)
}

// DeleteSession deletes a session below home, a Home of [Options], with its outputs
// and the sessions of its subagents. Errors are those of [store.Dirs.Delete].
func DeleteSession(home, id string) error {
	d := dirs(home)
	if err := d.Delete(id); err != nil {
		return err
	}
	forgotten := changes.Forget(home, id)
	list, err := store.List(d.Sessions)
	err = errors.Join(forgotten, err)
	for _, s := range list {
		if s.Parent == id {
			err = errors.Join(err, DeleteSession(home, s.ID))
		}
	}
	return err
}

func dirs(home string) store.Dirs {
	return store.Dirs{Sessions: SessionsDir(home), Contexts: ContextsDir(home)}
}
