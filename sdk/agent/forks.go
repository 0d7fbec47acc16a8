package agent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/skills"
)

// fork lets a subagent do the work of a skill.
func (a *Agent) fork(ctx context.Context, f skills.Fork) (string, error) {
	if a.subagents == nil || len(f.Session.AgentPath) >= a.maxDepth() {
		return "", skills.ErrNoFork
	}
	req := subagent.Request{Parent: f.Session, Model: a.modelOf(f.Session.ID, f.Skill.Model), Effort: f.Skill.Effort}
	req.Began = func(session string) { a.activated(core.SessionInfo{ID: session}, f.Skill) }
	return a.subagents.Run(ctx, req, f.Skill.Agent, f.Task, f.Progress)
}

// requestedFork is fork for a skill that the user named: nothing is asked, but the
// policy may still deny it.
func (a *Agent) requestedFork(ctx context.Context, f skills.Fork) (string, error) {
	if n := a.nodeOf(f.Session.ID); n != nil {
		n.mu.Lock()
		policy := n.cfg.Policy
		n.mu.Unlock()
		d := policy.Decide(ctx, core.PermissionRequest{Session: f.Session, Tool: skills.ToolName, Source: "skills", Accesses: []core.Access{f.Access()}})
		if d.Verdict == core.Deny {
			return "", fmt.Errorf("that is denied by %s", cmp.Or(d.Rule, "the policy"))
		}
	}
	return a.fork(ctx, f)
}

// modelOf returns the model that a skill wants, empty if a session's provider does
// not have it.
func (a *Agent) modelOf(session, wanted string) string {
	n := a.nodeOf(session)
	if wanted == "" || n == nil || a.opts.Skills.HasModel == nil {
		return wanted
	}
	n.mu.Lock()
	provider, s := n.cfg.Provider.Info().Name, n.session
	n.mu.Unlock()
	if a.opts.Skills.HasModel(provider, wanted) {
		return wanted
	}
	s.Warn(context.Background(), "SKILL_MODEL", fmt.Sprintf("a skill wants the model %s, which is not known for the provider %s: the session's model is used; the setting models makes it known", wanted, provider))
	return ""
}

// adjust sets model and effort of a session until its input is done, as a skill
// wants it.
func (a *Agent) adjust(of core.SessionInfo, name string, effort model.Effort) {
	if n := a.nodeOf(of.ID); n != nil {
		n.adjust(a.modelOf(of.ID, name), effort)
	}
}

// adjust sets model and effort beside the configuration; empty ones are those of the
// configuration.
func (f *node) adjust(name string, effort model.Effort) {
	f.mu.Lock()
	s, cfg, before := f.session, f.cfg, f.adjusted
	f.adjusted = name != "" || effort != ""
	f.mu.Unlock()
	if s == nil || !before && name == "" && effort == "" {
		return
	}
	cfg.Request.Effort = cmp.Or(effort, cfg.Request.Effort)
	s.SetModel(nil, cmp.Or(name, cfg.Model))
	s.SetRequest(cfg.Request)
}
