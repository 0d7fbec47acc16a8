package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/permissions/shell"
	"github.com/seed-009c0928/agent/plugins"
)

// newHooks returns what runs the hooks; nil without. Skills and agent types may have
// some.
func (a *Agent) newHooks() *hooks.Engine {
	sessions := a.skills != nil || slices.ContainsFunc(a.opts.Agents, func(d subagent.Definition) bool { return d.Hooks != "" })
	own, problems := hooks.CheckRules(a.opts.Hooks, CheckHookRule)
	for _, p := range problems {
		a.opts.Logger.Warn("a hook cannot be used", "hook", p.String())
	}
	o := hooks.Options{Hooks: own, Sessions: sessions, Matches: a.matchesRule, CallTool: a.callForHook, Mode: hookMode, Getenv: os.Getenv, Variable: hookVariable}
	if a.plugins != nil {
		for _, point := range a.plugins.HookPoints() {
			o.Later = append(o.Later, hooks.Event(point))
		}
		o.More = func(ctx context.Context, e hooks.Event) []hooks.Definition {
			list, _ := PluginHooks(ctx, a.plugins, e)
			return list
		}
	}
	return hooks.New(o)
}

// PluginHooks returns the hooks that the programs of plugins have of an event, and what
// is wrong with their rules.
func PluginHooks(ctx context.Context, host *plugins.Host, e hooks.Event) (list []hooks.Definition, problems []hooks.Problem) {
	for _, h := range host.Hooks(ctx, string(e)) {
		handler := hooks.Handler{Server: h.Plugin, Tool: h.Name, If: h.Condition, Timeout: h.Timeout.Seconds(), Once: h.Once}
		if h.AllowOnError {
			handler.OnError = "allow"
		}
		list = append(list, hooks.Define(hooks.Source{Name: "plugin " + h.Plugin}, e, h.Matcher, handler, h.Run))
	}
	list, problems = hooks.CheckRules(list, CheckHookRule)
	return list, append(problems, misspelt(list)...)
}

// HookEngine returns what runs the hooks of the sessions, for instance to try them;
// nil without hooks.
func (a *Agent) HookEngine() *hooks.Engine { return a.hooks }

// refused takes an input back that a hook refuses.
func (s *Session) refused(ctx context.Context, out core.Outcome, err error) (core.Outcome, error) {
	h := s.node.hooks
	h.Ended(ctx, err)
	blocked := h.Blocked()
	if blocked == nil {
		return out, err
	}
	out.Stop = core.StopError
	if inputs := s.Inputs(); len(inputs) > 0 {
		if err := s.Rewind(context.WithoutCancel(ctx), inputs[len(inputs)-1]); err != nil {
			return out, errors.Join(blocked, err)
		}
	}
	return out, blocked
}

// Compact has the model summarise the conversation. See [core.Session.Compact].
func (s *Session) Compact(ctx context.Context, focus string) error {
	defer s.node.hooks.Compact(focus)()
	return s.Session.Compact(ctx, focus)
}

// Ending says why the session is about to be closed, for SessionEnd hooks; see
// [hooks.Bound.Ending].
func (s *Session) Ending(reason string) { s.node.hooks.Ending(reason) }

// hookModes are the names of Claude Code for permission modes.
var hookModes = map[permissions.Mode]string{
	permissions.ModePlan: "plan", permissions.ModeAcceptEdits: "acceptEdits", permissions.ModeBypass: "bypassPermissions", permissions.ModeWorkspace: "auto",
}

func hookMode(p core.Policy) string {
	moded, ok := p.(interface{ Mode() permissions.Mode })
	if !ok {
		return ""
	}
	if name := hookModes[moded.Mode()]; name != "" {
		return name
	}
	return "default"
}

// hookVariable refuses variables for commands that a SessionStart hook must not set: those
// that decide which programs run and what they load, and secrets.
func hookVariable(name, value string) error {
	switch upper := strings.ToUpper(name); {
	case upper == "NODE_ENV":
	case shell.AffectsPrograms(name), shell.AffectsPrograms(upper), strings.HasPrefix(upper, "CLAUDE_"), strings.HasPrefix(upper, "AGENT_"):
		return errors.New("it changes what the shell or programs do; set it in the environment of the agent")
	}
	if len(proc.FilterEnv([]string{name + "=" + value}, proc.InheritAll)) == 0 {
		return errors.New("it looks like a secret; set it in the environment of the agent and name it in tools.passEnv")
	}
	return nil
}

// hookScopes are the scopes that the tools in Claude Code's rules stand for.
var hookScopes = map[string]string{
	"Bash": "shell", "Read": "fs-read", "Glob": "fs-read", "Grep": "fs-read", "LS": "fs-read", "Write": "fs-write", "Edit": "fs-write", "MultiEdit": "fs-write",
	"WebFetch": "network", "Agent": "subagent", "Task": "subagent",
}

// ruleOf translates a permission rule of Claude Code; ours stay as they are.
func ruleOf(text string) string {
	name, pattern, has := strings.Cut(strings.TrimSpace(text), "(")
	pattern = strings.TrimSuffix(pattern, ")")
	if server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__"); strings.HasPrefix(name, "mcp__") {
		if !ok {
			tool = "*"
		}
		return fmt.Sprintf("mcp(%s/%s)", server, tool)
	}
	scope, known := hookScopes[name]
	if !known {
		return text
	}
	switch {
	case !has || pattern == "" || pattern == "*":
		return scope + "(*)"
	case scope == "network":
		return "network(" + strings.TrimPrefix(pattern, "domain:") + ")"
	case scope == "shell":
		return "shell(" + strings.Replace(pattern, ":*", " *", 1) + ")"
	case strings.HasPrefix(scope, "fs-") && !strings.Contains(pattern, "/"): // as in .gitignore
		return scope + "(" + path.Join("**", pattern) + ")"
	case strings.HasPrefix(pattern, "//"): // absolute
		return scope + "(" + pattern[1:] + ")"
	case strings.HasPrefix(scope, "fs-") && strings.HasPrefix(pattern, "/"): // below the project
		return scope + "(." + pattern + ")"
	}
	return scope + "(" + pattern + ")"
}

// CheckHookRule finds what is wrong with a permission rule in the "if" of a hook, in Claude
// Code's words or ours.
func CheckHookRule(rule string) error {
	_, err := hookRule(permissions.Options{Home: "/home", Workspace: []string{"/"}}, "/", rule)
	return err
}

// hookRule returns a policy that denies what a rule matches, and nothing else.
func hookRule(o permissions.Options, base, rule string) (*permissions.Policy, error) {
	if strings.Contains(rule, "(") && !strings.HasSuffix(strings.TrimSpace(rule), ")") {
		return nil, fmt.Errorf("%q: expected ) at the end", rule)
	}
	o.Mode = permissions.ModeBypass
	o.Sets = []permissions.RuleSet{{Source: permissions.SourceFlag, Base: base, Settings: permissions.Settings{Deny: []string{ruleOf(rule)}}}}
	p, err := permissions.New(o)
	if wrong := (*permissions.RuleError)(nil); errors.As(err, &wrong) { // it is of no flag
		return nil, &permissions.RuleError{Rule: wrong.Rule, Column: wrong.Column, Reason: wrong.Reason}
	}
	return p, err
}

// matchesRule reports whether a permission rule matches a call: whether it would be
// denied if the rule were the only one.
func (a *Agent) matchesRule(ctx context.Context, rule string, call *core.Call) (bool, error) {
	info := a.env.Info()
	p, err := hookRule(permissions.Options{Home: info.Home, Workspace: info.Roots, Env: call.Env}, call.Session.Dir, rule)
	if err != nil {
		return false, err
	}
	entry, ok := a.entry(ctx, func(e core.Entry) bool { return e.ModelName == call.Name })
	if !ok {
		return false, fmt.Errorf("unknown tool %s", call.Name)
	}
	_, d, err := core.Judge(ctx, p, entry, call, nil)
	return err == nil && d.Verdict == core.Deny && strings.Contains(d.Rule, ruleOf(rule)), err
}

func (a *Agent) entry(ctx context.Context, is func(core.Entry) bool) (core.Entry, bool) {
	snapshot, _ := a.tools.Snapshot(ctx)
	if snapshot == nil {
		return core.Entry{}, false
	}
	for _, e := range snapshot.Entries() {
		if is(e) {
			return e, true
		}
	}
	return core.Entry{}, false
}

// callForHook calls a tool of an MCP server or a plugin for a hook.
func (a *Agent) callForHook(ctx context.Context, kind hooks.Kind, server, tool string, args json.RawMessage, session core.SessionInfo) (string, error) {
	entry, ok := a.entry(ctx, func(e core.Entry) bool {
		return e.Source == server && (e.ModelName == tool || strings.HasSuffix(e.ModelName, "_"+tool))
	})
	if !ok {
		return "", fmt.Errorf("%s has no tool %q that is known", server, tool)
	}
	args, _, err := entry.Coerce(args)
	if err != nil && kind == hooks.KindMCPTool {
		return "", fmt.Errorf("arguments of %s: %w", entry.ModelName, err)
	}
	call := &core.Call{
		ID: "hook", Name: entry.ModelName, Args: args, Session: session, Env: core.Restrict(a.env, nil, nil), Output: &strings.Builder{},
		Progress: func(core.Progress) {},
		Ask: func(context.Context, core.Question) (core.Answer, error) {
			return core.Answer{}, core.ErrNonInteractive
		},
	}
	res, err := entry.Tool.Run(ctx, call)
	if err != nil {
		return "", err
	}
	text := model.Parts(res.Content).Text()
	if res.Code != "" {
		return "", fmt.Errorf("%s: %s", res.Code, text)
	}
	return text, nil
}
