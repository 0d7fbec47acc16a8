package tools

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/preview"
)

var _ preview.Previewer = fileTool{}

// Preview implements [preview.Previewer] for the tools that change files.
func (t fileTool) Preview(ctx context.Context, call *core.Call) ([]preview.Change, error) {
	if t.changes == nil {
		return nil, nil
	}
	return preview.Run(ctx, call, t.Tool.Run)
}

// Run implements [core.Tool]: it makes the changes that the user made of the
// call's, or those of the call.
func (t fileTool) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	if changes := t.amended.take(call.ID); changes != nil {
		return runAmended(ctx, call, changes)
	}
	return t.Tool.Run(ctx, call)
}

// amendments are what users made of the changes of calls, by the call's ID. They
// are safe for concurrent use.
type amendments struct {
	mu     sync.Mutex
	byCall map[string][]preview.Change
}

func (a *amendments) take(call string) []preview.Change {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changes := a.byCall[call]
	delete(a.byCall, call)
	return changes
}

// Amend replaces the changes that a call of a built-in tool makes when it runs, by
// those that the user made of its preview. They need the call's permissions.
func (s *Set) Amend(call string, changes []preview.Change) {
	s.amended.mu.Lock()
	defer s.amended.mu.Unlock()
	if s.amended.byCall == nil {
		s.amended.byCall = map[string][]preview.Change{}
	}
	s.amended.byCall[call] = changes
}

// runAmended makes the user's changes.
func runAmended(ctx context.Context, call *core.Call, changes []preview.Change) (core.Result, error) {
	var all strings.Builder
	for _, c := range changes {
		var err error
		if c.After != nil {
			err = call.Env.Files().Write(ctx, c.Path, bytes.NewReader(c.After), 0)
		} else if c.Before != nil {
			err = call.Env.Files().Remove(ctx, c.Path)
		}
		if err != nil {
			return failure("write", c.Path, err), nil
		}
		all.WriteString(c.Diff())
	}
	result := core.TextResult("The user changed this edit before approving it. What was written instead:\n\n" + all.String())
	result.Meta = preview.Meta(changes...)
	return result, nil
}
