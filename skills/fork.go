package skills

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// Fork is the work of a skill with "context: fork", for a subagent.
type Fork struct {
	Session  core.SessionInfo // that needs the work done
	Skill    *Skill           // with the type of the subagent, model and effort
	Task     string           // the skill's text, and the arguments
	Progress func(core.Progress)
}

// ErrNoFork says that a session cannot start subagents.
var ErrNoFork = errors.New("this session starts no subagents")

// Access is what the policy must allow for the work.
func (f Fork) Access() core.Access { return f.Skill.forkAccess() }

func (s *Skill) forkAccess() core.Access {
	return core.Access{Scope: core.ScopeSubagent, Resource: cmp.Or(s.Agent, "general")}
}

// Result is what the calling session gets of a report, or of an error.
func (f Fork) Result(report string, err error) string {
	if err != nil {
		return fmt.Sprintf("A subagent was to do the work of the skill %s, but %v", f.Skill.Name, err)
	}
	return fmt.Sprintf("A subagent did the work of the skill %s. Its report:\n\n%s", f.Skill.Name, report)
}

// request is the part of a task that says what the user asked for.
func (s *Skill) request(task, args string, session core.SessionInfo) string {
	if _, used := (Values{Args: args, Names: s.Arguments, Dir: s.Dir, Session: session}).Fill(s.Body()); used || args == "" {
		return task
	}
	return task + "\n\nARGUMENTS: " + args
}

// fork returns the block of a skill whose work a subagent does: at once if the user
// asked for it by name, otherwise when the model loads it.
func (s *Source) fork(m Match, req core.ContextRequest, seen string) (core.Block, bool) {
	name := fmt.Sprintf("<skill name=%q scope=%q", m.Skill.Name, m.Skill.Scope)
	s.used(m.Skill)
	if m.By != ByName {
		text := fmt.Sprintf("%s>\n%s\nA subagent does this work. If it fits, load the skill with the skill tool; args say what it is about.\n</skill>", name, m.Skill.Description)
		return m.block(text), !strings.Contains(seen, text)
	}
	task := m.Skill.request(disclosed(m.Skill, m.Skill.filled(m.Args, req.Session)), m.Args, req.Session)
	if m.Args == "" {
		task += "\n\nThe user's input: " + strings.TrimSpace(inputText(req.Input))
	}
	s.opts.Fork(Fork{Session: req.Session, Skill: m.Skill, Task: task})
	return m.block(name + ">\nA subagent does this work. Its report is in the next message; without one, load the skill with the skill tool.\n</skill>"), true
}

// adjust sets the model and the effort that the skills which the user named want, as
// far as the session does the work itself.
func (s *Source) adjust(activated []Match) {
	if s.opts.Adjust == nil {
		return
	}
	var name string
	var effort model.Effort
	for _, m := range activated {
		if m.By == ByName && (!m.Skill.Fork || s.opts.Fork == nil) {
			name, effort = cmp.Or(name, m.Skill.Model), cmp.Or(effort, m.Skill.Effort)
		}
	}
	s.opts.Adjust(name, effort)
}

// fork lets a subagent do the work of a skill. Both results are empty if the session
// does it itself.
func (t *Tools) fork(ctx context.Context, call *core.Call, s *Skill, in toolArgs) (string, *refusal) {
	args := quoteArgs(in.Args)
	body := s.filled(args, call.Session)
	if in.Commands {
		body = t.runEmbedded(ctx, call, body)
	}
	f := Fork{Session: call.Session, Skill: s, Task: s.request(disclosed(s, body), args, call.Session), Progress: call.Progress}
	report, err := t.opts.Fork(ctx, f)
	switch {
	case errors.Is(err, ErrNoFork):
		return "", nil
	case err != nil:
		return "", refuse(core.CodeUnknown, "%s", f.Result("", err))
	}
	return f.Result(report, nil), nil
}

// SessionModel reports whether a model's name, as Claude Code has it, means here
// that of the session.
func SessionModel(name string) bool {
	return slices.Contains([]string{"inherit", "default", "sonnet", "opus", "haiku", "opusplan", "best"}, strings.ToLower(name))
}

func (d *reader) model(n *yaml.Node) string {
	name := d.text("model", n)
	if SessionModel(name) {
		if !strings.EqualFold(name, "inherit") {
			d.at(Note, n, "model %s means the session's model: for another one give its full name", cut(name, 40))
		}
		return ""
	}
	return name
}

func (d *reader) effort(n *yaml.Node) model.Effort {
	switch e := model.Effort(strings.ToLower(d.text("effort", n))); e {
	case "max":
		return model.EffortXHigh
	case "", model.EffortNone, model.EffortLow, model.EffortMedium, model.EffortHigh, model.EffortXHigh:
		return e
	default:
		d.at(Warning, n, "effort: expected none, low, medium, high, xhigh or max, found %q: the session's is used", cut(string(e), 40))
		return ""
	}
}
