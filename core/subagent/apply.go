package subagent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/lazy"
)

type applyArgs struct {
	AgentID string `json:"agent_id"`
	Action  string `json:"action,omitempty" jsonschema:"apply (default), branch or drop"`
	Branch  string `json:"branch,omitempty"`
}

func (s *Toolset) applyTool() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name: "apply_result", Scopes: []core.Scope{core.ScopeSubagent, core.ScopeWrite, core.ScopeDelete},
		Description: "Takes over what an agent with isolation changed; closing it drops that.",
	}, s.applyAccess, s.apply)
}

// isolated finds an isolated agent that is done.
func (s *Toolset) isolated(ctx context.Context, call *core.Call, id string) (*agent, Isolated, *core.Result) {
	a, refusal := s.find(ctx, call, id)
	if refusal != nil {
		return nil, nil, refusal
	}
	session, ok := a.session.(Isolated)
	if !ok {
		r := core.Failf(core.CodeValidation, "Agent %s works on the files themselves: there is nothing to apply.", id)
		return nil, nil, &r
	}
	if now, _ := a.state(); now.Status == "running" {
		r := core.Failf(core.CodeValidation, "Agent %s is still running: wait for it first.", id)
		return nil, nil, &r
	}
	return a, session, nil
}

// applyAccess returns the files that the call changes.
func (s *Toolset) applyAccess(ctx context.Context, call *core.Call, in applyArgs) ([]core.Access, error) {
	all := subagentAccess(in.AgentID)
	a, session, refusal := s.isolated(ctx, call, in.AgentID)
	if refusal != nil || in.Action == "drop" {
		return all, nil // Run says why
	}
	if in.Action == "branch" {
		line := append([]string{"git", "branch"}, strings.Fields(in.Branch)...)
		return append(all, core.Access{Scope: core.ScopeShell, Resource: strings.Join(line, " "), Argv: line}), nil
	}
	did, err := session.Changes(ctx)
	if err != nil {
		return nil, err
	}
	at := func(scope core.Scope, name string) {
		all = append(all, core.Access{Scope: scope, Resource: filepath.Join(did.Root, filepath.FromSlash(name))})
	}
	for _, f := range did.Files {
		switch {
		case f.Kind == "delete":
			at(core.ScopeDelete, f.Path)
		case f.From != "":
			at(core.ScopeDelete, f.From)
			fallthrough
		default:
			at(core.ScopeWrite, f.Path)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = did.State
	return all, nil
}

var branchName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

func (s *Toolset) apply(ctx context.Context, call *core.Call, in applyArgs) (core.Result, error) {
	a, session, refusal := s.isolated(ctx, call, in.AgentID)
	if refusal != nil {
		return *refusal, nil
	}
	switch in.Action {
	case "", "apply":
	case "branch":
		if in.Branch != "" && !branchName().MatchString(in.Branch) {
			return core.Failf(core.CodeValidation, "branch %q is invalid: use letters, digits, ., _, - and /.", in.Branch), nil
		}
		out, _ := a.state()
		first, _, _ := strings.Cut(strings.TrimSpace(out.Output), "\n")
		branch, err := session.Branch(ctx, in.Branch, strings.TrimSpace(a.name+": "+first))
		if err != nil {
			return core.Failf(core.CodeUnknown, "No branch was made: %v.", err), nil
		}
		return answer("Branch "+branch+" has what agent "+a.id+" changed.", map[string]string{"agentId": a.id, "branch": branch})
	case "drop":
		s.remove(call.Session.ID, a)
		a.end()
		return answer("Agent "+a.id+" is closed, and what it changed is dropped.", map[string]string{"agentId": a.id, "status": "closed"})
	default:
		return core.Failf(core.CodeValidation, "action %q is unknown: use apply, branch or drop.", in.Action), nil
	}
	a.mu.Lock()
	state := a.seen
	a.seen = ""
	a.mu.Unlock()
	if state == "" {
		return core.Failf(core.CodeValidation, "Agent %s was still running when this call was checked. Call apply_result again.", a.id), nil
	}
	conflicts, err := session.Apply(ctx, state)
	if err != nil {
		return core.Failf(core.CodeUnknown, "The changes were not applied: %v.", err), nil
	}
	if len(conflicts) > 0 {
		return core.Failf(core.CodeUnknown, "Applied, except to these files, which are as they were:\n%s\nwait shows the changes again: make these yourself.", strings.Join(conflicts, "\n")), nil
	}
	return answer("The changes of agent "+a.id+" are in the workspace.", map[string]string{"agentId": a.id, "status": "applied"})
}

// maxShown limits the diffs that a parent gets, in characters.
const maxShown = maxOutput / 2

// text describes changes to the model.
func (c Changes) text() string {
	if len(c.Files)+len(c.Left) == 0 {
		return "It changed no files."
	}
	var list, diffs strings.Builder
	for _, f := range c.Files {
		fmt.Fprintf(&list, "%s\n", line(f))
		if diffs.Len()+len(f.Diff) <= maxShown {
			diffs.WriteString(f.Diff)
		} else {
			fmt.Fprintf(&diffs, "(diff of %s left out)\n", f.Path)
		}
	}
	for _, left := range c.Left {
		fmt.Fprintf(&list, "not included: %s\n", left)
	}
	return fmt.Sprintf("It changed in its worktree (apply_result applies this):\n%s\n%s", list.String(), diffs.String())
}

func line(f event.FileChange) string {
	text := f.Kind + " " + f.Path
	if f.From != "" {
		text += " from " + f.From
	}
	if f.Mode != "" {
		text += " mode " + f.Mode
	}
	if f.Added+f.Removed > 0 {
		text += fmt.Sprintf(" +%d -%d", f.Added, f.Removed)
	}
	return text
}
