package page

import (
	"context"
	"io"
	"iter"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Logs are the sessions below the agent's home directory, a [Source].
type Logs string

func (l Logs) dir() string { return agent.SessionsDir(string(l)) }

// Stat implements Source.
func (l Logs) Stat(id string) (store.Summary, error) { return store.Stat(l.dir(), id) }

// Read implements Source.
func (l Logs) Read(ctx context.Context, id string, after event.Seq) iter.Seq2[event.Event, error] {
	return store.Read(ctx, l.dir(), id, after)
}

// Running implements Source.
func (l Logs) Running(id string) bool { return store.InUse(l.dir(), id) }

// Image implements Source.
func (l Logs) Image(ctx context.Context, id, hash string) ([]byte, error) {
	c, err := store.NewContext(agent.ContextsDir(string(l)), id, store.ContextOptions{})
	if err != nil {
		return nil, err
	}
	f, err := c.Open(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxPicture+1))
}
