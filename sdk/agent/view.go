package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/profile"
)

// view is the table of the tools that a profile has.
type view struct {
	base    core.ToolTable
	only    []string // names; empty = all
	without []string

	mu      sync.Mutex
	profile string
	of      *core.Snapshot // the table that now is derived from
	now     *core.Snapshot
}

var _ core.ToolTable = (*view)(nil)

// set changes the profile, from the next snapshot on.
func (v *view) set(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.profile, v.of = name, nil
}

// Snapshot implements [core.ToolTable].
func (v *view) Snapshot(ctx context.Context) (*core.Snapshot, error) {
	all, err := v.base.Snapshot(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if all == nil || all == v.of {
		return v.now, err
	}
	entries := slices.DeleteFunc(slices.Clone(all.Entries()), func(e core.Entry) bool {
		def := e.Tool.Definition()
		return !profile.HasTool(v.profile, def) ||
			len(v.only) > 0 && !slices.Contains(v.only, e.ModelName) || slices.Contains(v.without, def.Name) || slices.Contains(v.without, e.ModelName)
	})
	v.of, v.now = all, all
	if len(entries) < len(all.Entries()) {
		v.now = core.NewSnapshot(all.Version(), entries)
	}
	return v.now, err
}
