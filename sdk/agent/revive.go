package agent

import (
	"context"
	"fmt"
	"iter"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/subagent"
)

// newSession opens a session and, if it is resumed, restores its subagents. See gets the
// events that it is rebuilt from.
func (a *Agent) newSession(ctx context.Context, cfg core.Config, see func(event.Event)) (*core.Session, error) {
	if cfg.Journal == nil {
		return core.New(ctx, cfg)
	}
	var history subagent.History
	observed := &observed{cfg.Journal, func(e event.Event) {
		history.Add(e)
		see(e)
	}}
	cfg.Journal = observed
	if cfg.OnOpenCall == nil {
		cfg.OnOpenCall = func(c core.OpenCall) core.OpenCallAction {
			if c.ReadOnly || history.Spawning(c.ID) {
				return core.RerunCall
			}
			return core.CancelCall
		}
	}
	s, err := core.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	observed.see = nil
	if a.subagents != nil {
		a.subagents.Restore(core.SessionInfo{ID: cfg.ID, AgentPath: cfg.AgentPath, Dir: cfg.Env.Info().Dir}, &history)
	}
	return s, nil
}

// observed is a journal of which something else sees what a session is rebuilt from.
type observed struct {
	core.Journal
	see func(event.Event) // nil when the session is open
}

// Replay implements [core.Journal].
func (o *observed) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range o.Journal.Replay(ctx, after) {
			if err == nil && o.see != nil {
				o.see(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// ownedBy checks that a saved session is that of a subagent of the parent: the log of a
// fork names the subagents of the original.
func (a *Agent) ownedBy(child, parent string, saved bool) error {
	if !saved {
		return nil
	}
	about, err := store.Stat(SessionsDir(a.opts.Home), child)
	if err == nil && about.Parent != parent {
		err = fmt.Errorf("it belongs to session %s, of which this one is a copy", about.Parent)
	}
	return err
}

// recordLost records that a subagent was working when its process ended, and cannot be
// resumed.
func (a *Agent) recordLost(parent string, end event.SubagentEnd) {
	f := a.nodeOf(parent)
	if f == nil {
		return
	}
	f.mu.Lock()
	s := f.session
	f.mu.Unlock()
	s.Note(context.Background(), end)
}
