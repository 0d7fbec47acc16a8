package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// The tools whose calls are read in a [History].
const (
	spawnName = "spawn_agent"
	closeName = "close_agent"
)

// maxOutput limits what a parent gets of a report at once, in characters.
const maxOutput = 20_000

type spawnArgs struct {
	Task       string  `json:"task"`
	Agent      string  `json:"agent,omitempty"`
	WorkingDir string  `json:"working_dir,omitempty"`
	Isolation  string  `json:"isolation,omitempty" jsonschema:"worktree: on a copy"`
	Background bool    `json:"background,omitempty" jsonschema:"a message comes at the end"`
	Model      string  `json:"model,omitempty"`
	MaxTurns   int     `json:"max_turns,omitempty"`
	MaxTokens  int     `json:"max_tokens,omitempty"`
	MaxCostUSD float64 `json:"max_cost_usd,omitempty"`
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
	text := "Starts an agent on a part of the work, such as a search, and returns its id. " +
		"It has your files and tools but not this conversation: task must say everything."
	if len(s.opts.Definitions) > 0 {
		text += " Agent types:"
		for _, d := range s.opts.Definitions {
			text += fmt.Sprintf("\n- %s: %s", d.Name, d.Description)
		}
	}
	return core.NewTool(core.ToolDefinition{Name: spawnName, Description: text, Scopes: []core.Scope{core.ScopeSubagent}},
		func(_ context.Context, _ *core.Call, in spawnArgs) ([]core.Access, error) {
			if in.Agent != "" {
				return subagentAccess(in.Agent), nil
			}
			return subagentAccess("general"), nil
		}, s.spawn)
}

func (s *Toolset) spawn(ctx context.Context, call *core.Call, in spawnArgs) (core.Result, error) {
	a := s.spawnedBy(call)
	if a == nil {
		id := s.nextID()
		req, refusal := s.request(call.Session, id, in)
		if refusal != nil {
			return *refusal, nil
		}
		var err error
		if a, err = s.start(ctx, id, req, s.notifier(call.Session.ID, id, in.Background)); err != nil {
			return core.Failf(core.CodeConfig, "The agent could not be started: %v.", err), nil
		}
		a.begin(&s.wg, task(in))
	} else if err := s.wake(ctx, a); err != nil {
		return core.Failf(core.CodeConfig, "%v.", err), nil
	}
	text := fmt.Sprintf("Agent %s is running. wait returns its outcome.", a.id)
	if a.notify != nil {
		text = fmt.Sprintf("Agent %s is running in the background. A message comes when it is done.", a.id)
	}
	return answer(text, spawned{AgentID: a.id, Status: "running", Session: a.session.ID()})
}

// spawned is what a call of spawn_agent returns.
type spawned struct {
	AgentID string `json:"agentId"`
	Session string `json:"session"`
	Status  string `json:"status"`
}

// spawnedBy returns the agent that a call started in another process.
func (s *Toolset) spawnedBy(call *core.Call) *agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agents[call.Session.ID] {
		if a.past != nil && a.past.call != "" && a.past.call == call.ID {
			a.past.call = ""
			return a
		}
	}
	return nil
}

// request returns what the host needs to open the session of an agent.
func (s *Toolset) request(parent core.SessionInfo, id string, in spawnArgs) (Request, *core.Result) {
	refuse := func(r core.Result) (Request, *core.Result) { return Request{}, &r }
	if strings.TrimSpace(in.Task) == "" {
		return refuse(core.Fail(core.CodeValidation, "task is empty. Say what the agent should do and report."))
	}
	if depth := len(parent.AgentPath); depth >= s.opts.MaxDepth {
		return refuse(core.Failf(core.CodeValidation, "An agent at depth %d cannot start others (limit %d). Do the work yourself.", depth, s.opts.MaxDepth))
	}
	if in.MaxTurns < 0 || in.MaxTokens < 0 || in.MaxCostUSD < 0 {
		return refuse(core.Fail(core.CodeValidation, "A limit is negative. Give a positive one, or leave it out."))
	}
	req := Request{Parent: parent, WorkingDir: in.WorkingDir, Model: in.Model, MaxTurns: in.MaxTurns, MaxTokens: in.MaxTokens, MaxCost: in.MaxCostUSD, Isolated: in.Isolation != ""}
	req.name(id, nil)
	if in.Agent != "" {
		d, err := s.definition(in.Agent)
		if err != nil {
			return refuse(core.Failf(core.CodeNotFound, "%v", err))
		}
		req.name(id, d)
	}
	if clean := path.Clean("/" + in.WorkingDir); in.WorkingDir != "" && (path.IsAbs(in.WorkingDir) || clean == "/" && in.WorkingDir != "." || strings.Contains(in.WorkingDir, "..")) {
		return refuse(core.Failf(core.CodeValidation, "working_dir %q is not a subdirectory: give one relative to the working directory.", in.WorkingDir))
	}
	if in.Isolation != "" && in.Isolation != "worktree" {
		return refuse(core.Failf(core.CodeValidation, "isolation %q is unknown: use \"worktree\", or leave it out.", in.Isolation))
	}
	return req, nil
}

// notifier returns what tells a session that an agent in the background is done.
func (s *Toolset) notifier(parent, id string, background bool) func(outcome) {
	if !background || s.opts.Notify == nil {
		return nil
	}
	return func(out outcome) {
		s.opts.Notify(parent, notice(id, out))
	}
}

// notice is what a session is told of an agent in the background that is done.
func notice(id string, out outcome) string {
	return fmt.Sprintf("Agent %s is done (%s). wait returns its report.", id, out.Status)
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
	names = append(names, slices.Sorted(maps.Keys(known()))...)
	return nil, fmt.Errorf("there is no agent type %q: the agent types are %s; without one, leave agent out", name, strings.Join(names, ", "))
}

func (s *Toolset) sendTool() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name: "send_input", Scopes: []core.Scope{core.ScopeSubagent},
		Description: "Sends a message to an agent, running or done.",
	}, func(_ context.Context, _ *core.Call, in sendArgs) ([]core.Access, error) {
		return subagentAccess(in.AgentID), nil
	}, s.send)
}

func (s *Toolset) send(ctx context.Context, call *core.Call, in sendArgs) (core.Result, error) {
	a, refusal := s.find(ctx, call, in.AgentID)
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
		Description: "Waits for an agent and returns its report.",
	}, nil, s.wait)
}

func (s *Toolset) wait(ctx context.Context, call *core.Call, in agentArgs) (core.Result, error) {
	a, refusal := s.find(ctx, call, in.AgentID)
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
	text := fmt.Sprintf("Agent %s is done%s. It reports:\n\n%s", a.id, out.turns(" (%d turns)"), out.Output)
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

// turns tells the number of turns, unless they were those of another process.
func (o outcome) turns(format string) string {
	if o.Turns == 0 {
		return ""
	}
	return fmt.Sprintf(format, o.Turns)
}

// failure is the result of waiting for an agent that failed, with what it wrote
// before.
func failure(id string, out outcome) (core.Result, error) {
	text := fmt.Sprintf("Agent %s failed%s. It stopped early (%s).\n%s", id, out.turns(" after %d turns"), cmp.Or(out.Error, out.Stop), out.Output)
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
		Name: closeName, Scopes: []core.Scope{core.ScopeSubagent},
		Description: "Ends an agent, even a running one.",
	}, nil, s.close)
}

func (s *Toolset) close(_ context.Context, call *core.Call, in agentArgs) (core.Result, error) {
	a, refusal := s.lookup(call, in.AgentID)
	if refusal != nil {
		return *refusal, nil
	}
	before, _ := a.state()
	s.remove(call.Session.ID, a)
	a.end()
	return answer(fmt.Sprintf("Agent %s is closed; it was %s.", a.id, before.Status), before)
}
