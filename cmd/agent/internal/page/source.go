package page

import (
	"context"
	"iter"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

// Logs are the sessions in a directory of logs, a [Source].
type Logs string

// Stat implements Source.
func (l Logs) Stat(id string) (store.Summary, error) { return store.Stat(string(l), id) }

// Read implements Source.
func (l Logs) Read(ctx context.Context, id string, after event.Seq) iter.Seq2[event.Event, error] {
	return store.Read(ctx, string(l), id, after)
}

// Running implements Source.
func (l Logs) Running(id string) bool { return store.InUse(string(l), id) }
