package coretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// Table returns a [core.ToolTable] of the current tools of toolsets, under their
// names. It lists each set for each request; of two tools with the same name the
// later wins. It is safe for concurrent use.
func Table(sets ...core.Toolset) core.ToolTable { return &liveTable{sets: sets} }

type liveTable struct {
	sets []core.Toolset

	mu      sync.Mutex
	entries []core.Entry
	last    *core.Snapshot
}

// Snapshot implements [core.ToolTable].
func (t *liveTable) Snapshot(ctx context.Context) (*core.Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var entries []core.Entry
	var failed error
	for _, set := range t.sets {
		tools, err := set.Tools(ctx)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("toolset %q: %w", set.Name(), err))
		}
		for _, tool := range tools {
			entries = append(entries, core.Entry{ModelName: tool.Definition().Name, Source: set.Name(), Tool: tool})
		}
	}
	same := slices.EqualFunc(entries, t.entries, func(a, b core.Entry) bool {
		return a.ModelName == b.ModelName && a.Source == b.Source && a.Tool == b.Tool
	})
	if t.last == nil || !same {
		version := uint64(1)
		if t.last != nil {
			version += t.last.Version()
		}
		t.entries, t.last = entries, core.NewSnapshot(version, entries)
	}
	return t.last, failed
}
