package tools

import (
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
)

// TestWritersAreGuarded: a tool that writes files tells the guard which.
func TestWritersAreGuarded(t *testing.T) {
	t.Parallel()
	for _, tool := range Builtin(Options{Unguarded: true}).tools {
		d := tool.Definition()
		files, _ := tool.(fileTool)
		if writes := slices.Contains(d.Scopes, core.ScopeWrite); writes != (files.changes != nil) {
			t.Errorf("%s: has scope fs-write: %v, is a fileTool with changes: %v; both or neither", d.Name, writes, !writes)
		}
	}
}
