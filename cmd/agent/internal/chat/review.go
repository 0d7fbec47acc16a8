package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/planmode"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
	"github.com/seed-009c0928/agent/permissions"
)

// openCalls are the tool calls that have no result yet. They are safe for
// concurrent use.
type openCalls struct {
	mu    sync.Mutex
	calls []model.ToolCall
}

func (o *openCalls) add(call model.ToolCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call)
}

func (o *openCalls) remove(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = slices.DeleteFunc(o.calls, func(c model.ToolCall) bool { return c.ID == id })
}

// of returns the calls of a tool, the latest first.
func (o *openCalls) of(tool string) []model.ToolCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(o.calls), func(c model.ToolCall) bool { return c.Name != tool })
	slices.Reverse(calls)
	return calls
}

// review returns what the user sees of the call that a permission request is about.
func (c *chat) review(ctx context.Context, q core.Question) *tui.Review {
	calls := c.open.of(q.Tool)
	if q.Tool == planmode.Tool && len(calls) > 0 {
		return c.reviewPlan(calls[0])
	}
	if q.Kind != core.QuestionPermission {
		return nil
	}
	for _, call := range calls {
		changes, err := c.agent.Preview(ctx, call)
		if err != nil || len(changes) == 0 || !touches(q.Accesses, changes) {
			continue
		}
		r := &tui.Review{Changes: changes, Amend: func(changes []preview.Change) { c.agent.Amend(call.ID, changes) }}
		if c.mode() == permissions.ModeDefault {
			r.AcceptEdits = func() error { return c.setMode(context.Background(), permissions.ModeAcceptEdits) }
		}
		return r
	}
	foreign := c.foreign(ctx, q.Tool)
	if len(calls) > 0 && (foreign || q.Tool == "shell") {
		if changes := predict(ctx, c.agent.Env(), q.Tool, calls[0].Args); len(changes) > 0 {
			return &tui.Review{Changes: changes, Predicted: true}
		}
	}
	if len(calls) > 0 && foreign {
		return &tui.Review{Args: argumentLines(calls[0].Args)}
	}
	return nil
}

// reviewPlan shows a plan.
func (c *chat) reviewPlan(call model.ToolCall) *tui.Review {
	var in struct{ Plan string }
	if json.Unmarshal([]byte(call.Args), &in) != nil {
		return nil
	}
	return &tui.Review{
		Markdown: true, Changes: []preview.Change{{Path: "plan.md", At: "plan.md", After: []byte(in.Plan)}},
		Amend: func(changes []preview.Change) { c.plan.Amend(call.ID, string(changes[0].After)) },
	}
}

// touches reports whether a request is about these changes.
func touches(accesses []core.Access, changes []preview.Change) bool {
	return !slices.ContainsFunc(changes, func(c preview.Change) bool {
		return !slices.ContainsFunc(accesses, func(a core.Access) bool { return a.Resource == c.At })
	})
}

// foreign reports whether a tool is of a plugin, an MCP server or the host.
func (c *chat) foreign(ctx context.Context, tool string) bool {
	snapshot, err := c.agent.Tools().Snapshot(ctx)
	if err != nil {
		return false
	}
	e, ok := snapshot.Lookup(tool)
	return ok && e.Source != "builtin" && e.Source != "subagents" && e.Source != "skills"
}

// argumentLines formats arguments, one a line.
func argumentLines(args string) string {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &m) != nil {
		return args
	}
	var b strings.Builder
	for _, name := range cmdutil.SortedKeys(m) {
		text := string(m[name])
		if json.Unmarshal(m[name], &text) != nil {
			var pretty bytes.Buffer
			if json.Indent(&pretty, m[name], "", "  ") == nil {
				text = pretty.String()
			}
		}
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	return strings.TrimRight(b.String(), "\n")
}
