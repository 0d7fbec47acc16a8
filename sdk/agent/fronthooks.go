package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/skills"
)

// frontHooks are the hooks in front matter that apply in a session: those of its
// agent type, and of the skills that it works with.
type frontHooks struct {
	mu   sync.Mutex
	list []hooks.Definition
	seen map[string]bool // skills, by hash
	once sync.Once
	// past returns the skills that a resumed session worked with; may be nil.
	past func() []*skills.Skill
}

// ParseHooks is [hooks.Parse] that checks the rules of "if", too. A rule that matches nothing
// because its tool is misspelt is a problem, but not left out.
func ParseHooks(src hooks.Source, data []byte) ([]hooks.Definition, []hooks.Problem, error) {
	defs, problems, err := hooks.Parse(src, data)
	defs, more := hooks.CheckRules(defs, CheckHookRule)
	return defs, slices.Concat(problems, more, misspelt(defs)), err
}

// misspelt finds rules of "if" that name a tool in the style of Claude Code which is
// unknown, or which rules cannot name. They are valid, as plugins name their tools as they
// like, but match nothing. Tools here have names in lower case.
func misspelt(defs []hooks.Definition) (problems []hooks.Problem) {
	for _, d := range defs {
		name, _, _ := strings.Cut(strings.TrimSpace(d.Handler.If), "(")
		if name == "" || hookScopes[name] != "" || name != "bash" && strings.ToLower(name) == name || CheckHookRule(d.Handler.If) != nil {
			continue
		}
		why := ""
		if slices.Contains(claudeTools, name) {
			why = fmt.Sprintf("rules cannot name the tool %s; use the matcher", name)
		} else if near := jsonpos.Nearest(name, claudeTools); near != "" {
			why = fmt.Sprintf("there is no tool %s; did you mean %s?", name, near)
		}
		if why != "" {
			text := fmt.Sprintf("the rule %q of \"if\" matches no call: %s", d.Handler.If, why)
			problems = append(problems, hooks.Problem{Source: d.Source, Event: string(d.Event), Text: text})
		}
	}
	return problems
}

// claudeTools are the tools of Claude Code, as rules name them.
var claudeTools = []string{
	"Bash", "Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "Agent", "Task", "AskUserQuestion", "ExitPlanMode",
}

// SkillHooks returns the hooks in the front matter of a skill.
func SkillHooks(s *skills.Skill) ([]hooks.Definition, []hooks.Problem, error) {
	return skillHooks(s, "")
}

// skillHooks are those of a skill that a session works with; kind is the agent type of
// a subagent.
func skillHooks(s *skills.Skill, kind string) ([]hooks.Definition, []hooks.Problem, error) {
	if s.Hooks == "" {
		return nil, nil, nil
	}
	src := hooks.Source{Name: "skill " + s.Name, File: s.File, Agent: kind, Vars: map[string]string{}}
	if s.Dir != "" {
		src.Vars["CLAUDE_PLUGIN_ROOT"], src.Vars["CLAUDE_SKILL_DIR"] = s.Dir, s.Dir
		src.Read = []string{s.Dir}
	}
	maps.Copy(src.Vars, s.HookVars)
	if root := s.HookVars["CLAUDE_PLUGIN_ROOT"]; root != "" {
		src.Read = []string{root}
	}
	if data := s.HookVars["CLAUDE_PLUGIN_DATA"]; data != "" {
		src.Write = []string{data}
	}
	return ParseHooks(src, []byte(s.Hooks))
}

// TypeHooks returns the hooks in the front matter of an agent type.
func TypeHooks(d subagent.Definition) ([]hooks.Definition, []hooks.Problem, error) {
	if d.Hooks == "" {
		return nil, nil, nil
	}
	return ParseHooks(hooks.Source{Name: "agent type " + d.Name, File: d.Path, Agent: d.Name}, []byte(d.Hooks))
}

// addTypeHooks adds the hooks of an agent type to a subagent. One whose hooks cannot be
// read does not start: they may guard it.
func (f *node) addTypeHooks(d *subagent.Definition) error {
	if d == nil {
		return nil
	}
	list, _, err := TypeHooks(*d)
	f.front.list = append(f.front.list, list...)
	return err
}

// activated adds the hooks of a skill to a session that works with it.
func (a *Agent) activated(session core.SessionInfo, s *skills.Skill) {
	if f := a.nodeOf(session.ID); f != nil && s.Hooks != "" {
		f.addSkillHooks(s)
	}
}

func (f *node) addSkillHooks(s *skills.Skill) {
	list, problems, err := skillHooks(s, f.kind)
	f.front.mu.Lock()
	seen := f.front.seen[s.Hash]
	if f.front.seen == nil {
		f.front.seen = map[string]bool{}
	}
	f.front.seen[s.Hash] = true
	if !seen {
		f.front.list = append(slices.Clip(f.front.list), list...)
	}
	f.front.mu.Unlock()
	f.mu.Lock()
	session := f.session
	f.mu.Unlock()
	if seen || session == nil {
		return
	}
	if err != nil {
		problems = append(problems, hooks.Problem{Source: hooks.Source{Name: "skill " + s.Name, File: s.File}, Text: err.Error()})
	}
	for _, p := range problems {
		session.Warn(context.Background(), "HOOK", "not used: "+p.String())
	}
}

// moreHooks returns the hooks in front matter that apply in the session now, with those
// of the sessions that started it: a subagent does not escape a guard.
func (f *node) moreHooks() []hooks.Definition {
	f.front.once.Do(func() {
		if f.front.past != nil {
			for _, s := range f.front.past() {
				f.addSkillHooks(s)
			}
		}
	})
	f.front.mu.Lock()
	list := f.front.list
	f.front.mu.Unlock()
	if f.parent == nil {
		return list
	}
	return slices.Concat(f.parent.moreHooks(), list)
}

// pastSkills returns what finds the skills with hooks that a session worked with, in
// its journal; nil if there can be none.
func (a *Agent) pastSkills(journal core.Journal) func() []*skills.Skill {
	if a.skills == nil || journal == nil {
		return nil
	}
	return func() (list []*skills.Skill) {
		catalog := a.opts.Skills.Library.Catalog()
		if !slices.ContainsFunc(catalog.Skills, func(s *skills.Skill) bool { return s.Hooks != "" }) {
			return nil
		}
		for e, err := range journal.Replay(context.Background(), 0) {
			if err != nil {
				break // the session says what is wrong with it
			}
			name := ""
			switch body := e.Body.(type) {
			case event.SkillActivated:
				name = body.Scope + ":" + body.Name
			case event.ToolUse:
				var args struct{ Action, Name string }
				if body.Name == skills.ToolName && json.Unmarshal([]byte(body.Args), &args) == nil && args.Action == "load" {
					name = args.Name
				}
			}
			if s, ok := catalog.Find(name); ok && name != "" && s.Hooks != "" && !s.Fork {
				list = append(list, s)
			}
		}
		return list
	}
}
