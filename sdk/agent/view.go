package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/profile"
)

// tables are those of the tools that profiles have. Sessions share them, and with
// them what is known of the tools' arguments.
type tables struct {
	all core.ToolTable

	mu   sync.Mutex
	of   *core.Snapshot            // the table that made is derived from
	made map[string]*core.Snapshot // by profile
}

func (t *tables) snapshot(ctx context.Context, name string) (*core.Snapshot, error) {
	all, err := t.all.Snapshot(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if all != nil && all != t.of {
		t.of, t.made = all, map[string]*core.Snapshot{}
	}
	if t.of != nil && t.made[name] == nil {
		t.made[name] = keep(t.of, func(_ string, def core.ToolDefinition) bool { return profile.HasTool(name, def) })
	}
	return t.made[name], err
}

// keep returns a table with some tools of another.
func keep(all *core.Snapshot, wanted func(modelName string, def core.ToolDefinition) bool) *core.Snapshot {
	entries := slices.DeleteFunc(slices.Clone(all.Entries()), func(e core.Entry) bool { return !wanted(e.ModelName, e.Tool.Definition()) })
	if len(entries) == len(all.Entries()) {
		return all
	}
	return core.NewSnapshot(all.Version(), entries)
}

// view is the table of the tools that a session has.
type view struct {
	base    *tables
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
	v.profile = name
}

// Snapshot implements [core.ToolTable].
func (v *view) Snapshot(ctx context.Context) (*core.Snapshot, error) {
	v.mu.Lock()
	name := v.profile
	v.mu.Unlock()
	all, err := v.base.snapshot(ctx, name)
	v.mu.Lock()
	defer v.mu.Unlock()
	if all != nil && all != v.of {
		v.of, v.now = all, keep(all, func(name string, def core.ToolDefinition) bool {
			return (len(v.only) == 0 || slices.Contains(v.only, name)) && !slices.Contains(v.without, def.Name) && !slices.Contains(v.without, name)
		})
	}
	return v.now, err
}
