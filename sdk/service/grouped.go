package service

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// groupFor is how long an event waits for others, to be stored with them.
const groupFor = 10 * time.Millisecond

// grouped is a journal that stores events together, as each write to the log is synced to
// the disk. An event that nothing depends on yet waits for the next one that something
// depends on, such as the start of a request to the model or the permission of a call, and
// for Sync: they are stored before those take effect. It is safe for concurrent use.
type grouped struct {
	to     Journal
	within time.Duration // see [groupFor]

	mu    sync.Mutex
	held  []event.Event // not stored, or not known to be
	tried int           // so many of them were to be stored together, which failed
	last  event.Seq     // the newest one that was appended
	timer *time.Timer
}

var _ core.Journal = (*grouped)(nil)

func group(j Journal) *grouped { return &grouped{to: j, within: groupFor} }

// waits reports whether an event may be lost in a crash just after it was appended:
// nothing outside the session happens between it and one that is stored.
func waits(b event.Body) bool {
	switch b.(type) {
	case event.SessionStart, event.User, event.Prompt, event.MessageStart, event.Message, event.LLMEnd, event.ToolUse,
		event.Idle, event.Result, event.SessionEnd:
		return true
	}
	return false
}

// Append implements [core.Journal]. An event that could not be stored is kept, and is the
// same one when it is appended again.
func (g *grouped) Append(ctx context.Context, e event.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Seq > g.last {
		g.held, g.last = append(g.held, e), e.Seq
	}
	if g.tried > 0 || len(g.held) >= MaxTogether || !waits(e.Body) {
		return g.store(ctx)
	}
	if len(g.held) == 1 {
		ctx = context.WithoutCancel(ctx)
		g.timer = time.AfterFunc(g.within, func() { _ = g.flush(ctx) }) // the next append says what failed
	}
	return nil
}

// flush stores what waits.
func (g *grouped) flush(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.store(ctx)
}

func (g *grouped) store(ctx context.Context) error {
	if g.timer != nil {
		g.timer.Stop()
	}
	for len(g.held) > 0 {
		// What failed may be stored nevertheless: only the same again is known as that.
		if g.tried == 0 {
			g.tried = min(len(g.held), MaxTogether)
		}
		if err := g.to.AppendAll(ctx, g.held[:g.tried]); err != nil {
			return err
		}
		g.held, g.tried = g.held[g.tried:], 0
	}
	g.held = nil
	return nil
}

// Sync implements [core.Journal].
func (g *grouped) Sync(ctx context.Context) error {
	if err := g.flush(ctx); err != nil {
		return err
	}
	return g.to.Sync(ctx)
}

// Replay implements [core.Journal].
func (g *grouped) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := g.flush(ctx); err != nil {
			yield(event.Event{}, err)
			return
		}
		g.to.Replay(ctx, after)(yield)
	}
}
