package tools

import (
	"context"
	"slices"

	"github.com/seed-009c0928/agent/core"
)

// Options choose among the built-in tools. The zero value takes all of them.
type Options struct {
	// Without names tools to leave out, such as those that a profile replaces
	// by its own. A name that no tool has is ignored.
	Without []string
	// Unguarded lets a session change files that it has not read, or that
	// have changed since it did.
	Unguarded bool
}

// Builtin returns the built-in tools as a toolset named "builtin". It never
// changes, and Close has nothing to do.
func Builtin(opts Options) core.Toolset {
	all := []core.Tool{
		ReadFile(), ReadManyFiles(), WriteFile(), EditFile(), ApplyPatch(), Shell(), Grep(), Glob(), ListDir(), UpdatePlan(), AskUser(),
	}
	if !opts.Unguarded {
		g := newGuard()
		for i, t := range all {
			all[i] = g.wrap(t)
		}
	}
	return builtin{slices.DeleteFunc(all, func(t core.Tool) bool {
		return slices.Contains(opts.Without, t.Definition().Name)
	})}
}

type builtin struct{ tools []core.Tool }

var _ core.Toolset = builtin{}

// Name implements [core.Toolset].
func (b builtin) Name() string { return "builtin" }

// Tools implements [core.Toolset].
func (b builtin) Tools(context.Context) ([]core.Tool, error) { return slices.Clone(b.tools), nil }

// Changed implements [core.Toolset].
func (b builtin) Changed() <-chan struct{} { return nil }

// Close implements [core.Toolset].
func (b builtin) Close() error { return nil }
