package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// maxOutput limits what a parent gets of a report at once, in characters.
const maxOutput = 20_000

type spawnArgs struct {
	Task       string  `json:"task" jsonschema:"everything that the agent must know"`
	Agent      string  `json:"agent,omitempty" jsonschema:"agent type"`
	WorkingDir string  `json:"working_dir,omitempty" jsonschema:"subdirectory that becomes its working directory and workspace"`
	Isolation  string  `json:"isolation,omitempty" jsonschema:"\"worktree\": it works on a copy of the workspace, apply_result takes over what it changed"`
	Background bool    `json:"background,omitempty" jsonschema:"you get a message when it is done, so you need not wait"`
	Model      string  `json:"model,omitempty" jsonschema:"another model"`
	MaxTurns   int     `json:"max_turns,omitempty" jsonschema:"limit on its turns (default none)"`
	MaxTokens  int     `json:"max_tokens,omitempty" jsonschema:"limit on the tokens that it uses (default none)"`
	MaxCostUSD float64 `json:"max_cost_usd,omitempty" jsonschema:"limit on its cost in USD (default none)"`
}

type agentArgs struct {
	AgentID string `json:"agent_id"`
}

type sendArgs struct {
	AgentID string `json:"agent_id"`
	Message string `json:"message"`
}

func subagentAccess(name string) []core.Access {
	return []core.Access{{Scope: core.ScopeSubagent, Resource: name}}
}

func (s *Toolset) spawnTool() core.Tool {
	text := "Starts an agent on a part of the work and returns its id at once. It has the same files and tools but sees nothing of this conversation: the task must say everything. " +
		"For searches whose details you do not need, or parts that can be done in parallel."
	if len(s.opts.Definitions) > 0 {
		text += " Agent types:"
		for _, d := range s.opts.Definitions {
			text += fmt.Sprintf("\n- %s: %s", d.Name, d.Description)
		}
	}
	return core.NewTool(core.ToolDefinition{Name: "spawn_agent", Description: text, Scopes: []core.Scope{core.ScopeSubagent}},
		func(_ context.Context, _ *core.Call, in spawnArgs) ([]core.Access, error) {
			if in.Agent != "" {
				return subagentAccess(in.Agent), nil
			}
			return subagentAccess("general"), nil
		}, s.spawn)
}

func (s *Toolset) spawn(ctx context.Context, call *core.Call, in spawnArgs) (core.Result, error) {
	if strings.TrimSpace(in.Task) == "" {
		return core.Fail(core.CodeValidation, "task is empty. Say what the agent should do and report."), nil
	}
	if depth := len(call.Session.AgentPath); depth >= s.opts.MaxDepth {
		return core.Failf(core.CodeValidation, "An agent at depth %d cannot start others (limit %d). Do the work yourself.", depth, s.opts.MaxDepth), nil
	}
	if in.MaxTurns < 0 || in.MaxTokens < 0 || in.MaxCostUSD < 0 {
		return core.Fail(core.CodeValidation, "A limit is negative. Give a positive one, or leave it out."), nil
	}
	req := Request{Parent: call.Session, WorkingDir: in.WorkingDir, Model: in.Model, MaxTurns: in.MaxTurns, MaxTokens: in.MaxTokens, MaxCost: in.MaxCostUSD}
	id := s.nextID()
	req.name(id, nil)
	if in.Agent != "" {
		d, err := s.definition(in.Agent)
		if err != nil {
			return core.Failf(core.CodeNotFound, "%v", err), nil
		}
		req.name(id, d)
	}
	if clean := path.Clean("/" + in.WorkingDir); in.WorkingDir != "" && (path.IsAbs(in.WorkingDir) || clean == "/" && in.WorkingDir != "." || strings.Contains(in.WorkingDir, "..")) {
		return core.Failf(core.CodeValidation, "working_dir %q is not a subdirectory: give one relative to the working directory.", in.WorkingDir), nil
	}
	if in.Isolation != "" && in.Isolation != "worktree" {
		return core.Failf(core.CodeValidation, "isolation %q is unknown: use \"worktree\", or leave it out.", in.Isolation), nil
	}
	req.Isolated = in.Isolation != ""
	var notify func(outcome)
	if in.Background && s.opts.Notify != nil {
		notify = func(out outcome) {
			s.opts.Notify(call.Session.ID, fmt.Sprintf("Agent %s is done (%s). wait returns its report.", id, out.Status))
		}
	}
	a, err := s.start(ctx, id, req, notify)
	if err != nil {
		return core.Failf(core.CodeConfig, "The agent could not be started: %v.", err), nil
	}
	a.begin(&s.wg, task(in))
	text := fmt.Sprintf("Agent %s is running. wait returns its outcome.", id)
	if a.notify != nil {
		text = fmt.Sprintf("Agent %s is running in the background. A message comes when it is done.", id)
	}
	return answer(text, map[string]string{"agentId": id, "status": "running", "session": a.session.ID()})
}

// name names a subagent after its type, which may be nil.
func (r *Request) name(id string, d *Definition) {
	if r.Definition, r.Name = d, id; d != nil {
		r.Name = d.Name + "-" + strings.TrimPrefix(id, "agent-")
	}
}

// start opens a subagent, which has nothing to do yet.
func (s *Toolset) start(ctx context.Context, id string, req Request, notify func(outcome)) (*agent, error) {
	session, err := s.host.Spawn(ctx, req)
	if err != nil {
		return nil, err
	}
	a := &agent{id: id, name: req.Name, session: session, notify: notify}
	a.ctx, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.add(req.Parent.ID, a); err != nil {
		a.stop()
		return nil, errors.Join(err, session.Close())
	}
	return a, nil
}

// task is the first message to an agent.
func task(in spawnArgs) string {
	text := in.Task
	if in.WorkingDir != "" {
		text += "\n\nYour working directory is " + in.WorkingDir + ". It is your whole workspace: anything outside it needs approval."
	}
	if in.Isolation != "" {
		text += "\n\nYou work in a copy of the workspace, on a separate branch. Leave your changes in its files, committed or not: they are looked at and taken over from there. Use relative paths."
	}
	return text
}

// definition returns the agent type of a name.
func (s *Toolset) definition(name string) (*Definition, error) {
	var names []string
	for i, d := range s.opts.Definitions {
		if strings.EqualFold(d.Name, name) {
			return &s.opts.Definitions[i], nil
		}
		names = append(names, d.Name)
	}
	if d, ok := known()[strings.ToLower(name)]; ok {
		return d, nil
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no agent type %q: leave agent out", name)
	}
	return nil, fmt.Errorf("there is no agent type %q: the agent types are %s", name, strings.Join(names, ", "))
}

func (s *Toolset) sendTool() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name: "send_input", Scopes: []core.Scope{core.ScopeSubagent},
		Description: "Sends a message to an agent, running or done.",
	}, func(_ context.Context, _ *core.Call, in sendArgs) ([]core.Access, error) {
		return subagentAccess(in.AgentID), nil
	}, s.send)
}

func (s *Toolset) send(_ context.Context, call *core.Call, in sendArgs) (core.Result, error) {
	a, refusal := s.find(call, in.AgentID)
	if refusal != nil {
		return *refusal, nil
	}
	if strings.TrimSpace(in.Message) == "" {
		return core.Fail(core.CodeValidation, "message is empty."), nil
	}
	if a.steer(in.Message) {
		return answer("The message waits for its current step to end.", map[string]string{"agentId": a.id, "status": "running"})
	}
	if a.session.State() == core.StateClosed {
		return core.Failf(core.CodeUnknown, "Agent %s is closed and takes no more messages. Start another one.", a.id), nil
	}
	a.begin(&s.wg, in.Message)
	return answer("Agent "+a.id+" is running again.", map[string]string{"agentId": a.id, "status": "running"})
}

func (s *Toolset) waitTool() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name: "wait", ReadOnly: true, Scopes: []core.Scope{core.ScopeSubagent}, Output: core.OutputLimit{MaxChars: maxOutput, Mode: core.HeadTail},
		Description: "Waits until an agent is done and returns its report.",
	}, nil, s.wait)
}

func (s *Toolset) wait(ctx context.Context, call *core.Call, in agentArgs) (core.Result, error) {
	a, refusal := s.find(call, in.AgentID)
	if refusal != nil {
		return *refusal, nil
	}
	out, err := a.await(ctx, call.Progress)
	if err != nil {
		return core.Failf(core.CodeCancelled, "Waiting for %s was cancelled; it keeps running.", a.id), nil
	}
	if !out.Success {
		return failure(a.id, out)
	}
	text := fmt.Sprintf("Agent %s is done (%d turns). It reports:\n\n%s", a.id, out.Turns, out.Output)
	if session, ok := a.session.(Isolated); ok {
		did, err := session.Changes(ctx)
		if err != nil {
			return core.Failf(core.CodeUnknown, "%s\n\nWhat it changed is unknown: %v.", text, err), nil
		}
		out.Files = did.Files
		text += "\n\n" + did.text()
	}
	return answer(text, out)
}

// await waits until the agent is done, and reports its tool calls as progress.
func (a *agent) await(ctx context.Context, progress func(core.Progress)) (outcome, error) {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.watch(watching, progress)
	}()
	defer func() {
		stop()
		<-watched
	}()
	_, done := a.state()
	select {
	case <-done:
	case <-ctx.Done():
		return outcome{}, context.Cause(ctx)
	}
	out, _ := a.state()
	return out, nil
}

// failure is the result of waiting for an agent that failed, with what it wrote
// before.
func failure(id string, out outcome) (core.Result, error) {
	text := fmt.Sprintf("Agent %s failed after %d turns. It stopped early (%s).\n%s", id, out.Turns, cmp.Or(out.Error, out.Stop), out.Output)
	res := core.Fail(core.CodeUnknown, strings.TrimSpace(text))
	var err error
	res.Structured, err = json.Marshal(out)
	return res, err
}

// watch reports the agent's tool calls as progress.
func (a *agent) watch(ctx context.Context, tell func(core.Progress)) {
	if tell == nil {
		return
	}
	for e, err := range a.session.Events(ctx, 0) {
		if err != nil {
			return
		}
		if b, ok := e.Body.(event.ToolUse); ok {
			tell(core.Progress{Message: a.name + ": " + b.Name})
		}
	}
}

func (s *Toolset) closeTool() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name: "close_agent", Scopes: []core.Scope{core.ScopeSubagent},
		Description: "Ends an agent, even while it is running.",
	}, nil, s.close)
}

func (s *Toolset) close(_ context.Context, call *core.Call, in agentArgs) (core.Result, error) {
	a, refusal := s.find(call, in.AgentID)
	if refusal != nil {
		return *refusal, nil
	}
	before, _ := a.state()
	s.remove(call.Session.ID, a)
	a.end()
	return answer(fmt.Sprintf("Agent %s is closed; it was %s.", a.id, before.Status), before)
}
