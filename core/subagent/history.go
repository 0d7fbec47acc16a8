package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// History is what the events of a session say about its agents: those that it did not
// close can be restored in another process. The zero value is empty.
type History struct {
	agents []*past
	calls  map[string]string // of close_agent without a result: the agent's ID
}

// past is an agent of another process.
type past struct {
	call    string // of spawn_agent; empty when it has a result
	args    string
	id      string
	session string              // empty if it was not started
	input   event.SubagentStart // the last one
	last    *event.SubagentEnd  // of that; nil if it was running
	told    bool                // the session got the notice that it is done
}

// Add takes an event of the session.
func (h *History) Add(e event.Event) {
	switch b := e.Body.(type) {
	case event.ToolUse:
		h.use(e.Call, b)
	case event.ToolResult:
		h.result(e.Call, b)
	case event.SubagentStart:
		if p := h.started(b.Child); p != nil {
			if p.session, p.last = b.Child, nil; b.Input != "" {
				p.input = b
			}
			p.id = cmp.Or(p.id, "agent-"+b.Name[strings.LastIndexByte(b.Name, '-')+1:])
		}
	case event.SubagentEnd:
		if at := slices.IndexFunc(h.agents, func(p *past) bool { return p.session == b.Child }); at >= 0 {
			h.agents[at].last, h.agents[at].told = &b, false
		}
	case event.Queued:
		h.told(b.Content.Text())
	case event.Steering:
		h.told(b.Content.Text())
	}
}

// told takes a message to the session.
func (h *History) told(text string) {
	for _, p := range h.agents {
		p.told = p.told || p.last != nil && strings.Contains(text, notice(p.id, p.outcome()))
	}
}

func (h *History) use(call string, b event.ToolUse) {
	switch b.Name {
	case spawnName:
		h.agents = append(h.agents, &past{call: call, args: b.Args})
	case closeName:
		var in agentArgs
		if json.Unmarshal([]byte(b.Args), &in) == nil {
			if h.calls == nil {
				h.calls = map[string]string{}
			}
			h.calls[call] = in.AgentID
		}
	}
}

func (h *History) result(call string, b event.ToolResult) {
	switch b.Name {
	case spawnName:
		at := slices.IndexFunc(h.agents, func(p *past) bool { return p.call == call && call != "" })
		if at < 0 {
			return
		}
		var out spawned
		if p := h.agents[at]; b.IsError || json.Unmarshal(b.Structured, &out) != nil {
			if p.call = ""; p.session == "" {
				h.agents = slices.Delete(h.agents, at, at+1)
			}
		} else {
			p.call, p.id, p.session = "", out.AgentID, out.Session
		}
	case closeName:
		if id := h.calls[call]; !b.IsError {
			h.agents = slices.DeleteFunc(h.agents, func(p *past) bool { return p.id == id })
		}
		delete(h.calls, call)
	}
}

// started returns the agent of a session: one that has it, or the one that is being
// spawned.
func (h *History) started(session string) *past {
	at := slices.IndexFunc(h.agents, func(p *past) bool { return p.session == session })
	if at < 0 {
		at = slices.IndexFunc(h.agents, func(p *past) bool { return p.session == "" && p.call != "" })
	}
	if at < 0 {
		return nil // of a skill, whose call has its result
	}
	return h.agents[at]
}

// Spawning reports whether a call of spawn_agent without a result started an agent,
// which running it again continues, or did nothing.
func (h *History) Spawning(call string) bool {
	return slices.ContainsFunc(h.agents, func(p *past) bool { return p.call == call })
}

// Restore adds the agents that a session had in another process. Their sessions are
// opened when they are used, or by [Toolset.Revive].
func (s *Toolset) Restore(parent core.SessionInfo, h *History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range h.agents {
		if p.session == "" {
			continue // it had not begun
		}
		a := &agent{id: p.id, past: p, parent: parent, done: make(chan struct{}), last: p.outcome()}
		a.inputs, _ = strconv.Atoi(p.input.InputID)
		a.ctx, a.stop = context.WithCancel(context.Background())
		close(a.done)
		s.agents[parent.ID] = append(s.agents[parent.ID], a)
		if n, err := strconv.Atoi(strings.TrimPrefix(p.id, "agent-")); err == nil {
			s.names = max(s.names, n)
		}
	}
}

// outcome returns what the agent did last.
func (p *past) outcome() outcome {
	if p.last == nil {
		return outcome{Status: "failed", Error: "the process ended while it was working"}
	}
	done := p.last.Outcome == string(core.StopDone) || p.last.Outcome == string(core.StopAwaitingInput)
	out := outcome{Status: "completed", Output: p.last.Text, Success: done, Tokens: p.last.Usage.Total()}
	if p.last.CostUSD != nil {
		out.CostUSD = *p.last.CostUSD
	}
	if !done {
		out.Status, out.Stop, out.Error = "failed", p.last.Outcome, p.last.Error
	}
	return out
}

// Revive continues the restored agents of a session that were working when their
// process ended. What cannot be continued is recorded, and the session is told, as it
// is of what was done in the background just before that.
func (s *Toolset) Revive(ctx context.Context, parent string) {
	s.mu.Lock()
	list := slices.Clone(s.agents[parent])
	s.mu.Unlock()
	for _, a := range list {
		if a.past == nil {
			continue
		}
		told := a.past.told
		if a.past.told = true; a.past.last != nil {
			if !told && a.past.last.Outcome != string(core.StopCancelled) {
				s.tell(a)
			}
			continue
		}
		start := a.past.input
		if start.InputID == "" { // it had no input yet
			start.Input, start.InputID = a.past.task(), "1"
		}
		if err := s.wake(ctx, a); err != nil {
			a.past.last = &event.SubagentEnd{Name: start.Name, Child: a.past.session, Outcome: string(core.StopAborted), Error: err.Error()}
			if s.opts.Lost != nil {
				s.opts.Lost(parent, *a.past.last)
			}
			if s.opts.Notify != nil {
				s.opts.Notify(parent, err.Error())
			}
			continue
		}
		a.past.last = &event.SubagentEnd{}
		a.inputs, _ = strconv.Atoi(start.InputID)
		a.inputs-- // begin submits that one again
		a.begin(&s.wg, start.Input)
	}
}

// tell tells a session that a restored agent was done, if it worked in the background.
func (s *Toolset) tell(a *agent) {
	var in spawnArgs
	_ = json.Unmarshal([]byte(a.past.args), &in) // it was valid
	if notify := s.notifier(a.parent.ID, a.id, in.Background); notify != nil {
		notify(a.past.outcome())
	}
}

// task returns the first input.
func (p *past) task() string {
	var in spawnArgs
	_ = json.Unmarshal([]byte(p.args), &in) // wake reports an error
	return task(in)
}

// wake opens the session of a restored agent, once. The error says what is lost.
func (s *Toolset) wake(ctx context.Context, a *agent) error {
	a.waking.Lock()
	defer a.waking.Unlock()
	if a.session != nil || a.past == nil || a.lost != nil {
		return a.lost
	}
	lost := func(reason any) error {
		a.lost = fmt.Errorf("the agent %s is lost with the process that it worked in: %v; what it did until then is in the files and in its session log, %s", a.id, reason, a.past.session)
		return a.lost
	}
	var in spawnArgs
	if err := json.Unmarshal([]byte(a.past.args), &in); err != nil {
		return lost("how it was started is not recorded")
	}
	if in.Isolation != "" {
		return lost("its copy of the workspace is gone, with what it changed there")
	}
	req, refusal := s.request(a.parent, a.id, in)
	if refusal != nil {
		return lost(strings.TrimSuffix(model.Parts(refusal.Content).Text(), "."))
	}
	req.Session = a.past.session
	session, err := s.host.Spawn(ctx, req)
	if err != nil {
		return lost(err)
	}
	a.session, a.name, a.notify = session, req.Name, s.notifier(a.parent.ID, a.id, in.Background)
	return nil
}
