package agent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
)

// Preview returns what a call would change in files, without running it. It is for
// a user who decides on the call: it reads files without asking. Of a tool that is
// no [preview.Previewer] it returns no changes.
func (a *Agent) Preview(ctx context.Context, call model.ToolCall) (changes []preview.Change, err error) {
	snapshot, err := a.tools.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	entry, ok := snapshot.Lookup(call.Name)
	if !ok {
		return nil, nil
	}
	args, _, err := entry.Coerce(json.RawMessage(call.Args))
	if err != nil {
		return nil, err
	}
	return previewOf(ctx, entry, &core.Call{ID: call.ID, Name: call.Name, Args: args, Session: core.SessionInfo{Dir: a.env.Info().Dir}, Env: a.env})
}

func previewOf(ctx context.Context, e core.Entry, call *core.Call) (changes []preview.Change, err error) {
	p, ok := e.Tool.(preview.Previewer)
	if !ok {
		return nil, nil
	}
	defer func() {
		if recover() != nil {
			changes, err = nil, errors.New("the preview failed")
		}
	}()
	return p.Preview(ctx, call)
}

// Amend replaces what a call of a built-in tool changes, which waits for approval,
// by what the user made of its preview.
func (a *Agent) Amend(call string, changes []preview.Change) {
	if a.builtins != nil {
		a.builtins.Amend(call, changes)
	}
}
