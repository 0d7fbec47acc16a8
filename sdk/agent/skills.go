package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/skills"
)

// SkillOptions configure the skills of an agent. The zero value has none.
type SkillOptions struct {
	Library *skills.Library
	Max     int // skills disclosed in full per input; 0 = 3
	// Usage is the file that records the use of skills; empty = none.
	Usage         string
	ScriptTimeout time.Duration // 0 = 1 min
	// OpenToolset opens a skill's binary, see skills.ToolsOptions; nil opens it
	// as a plugin.
	OpenToolset func(path, sum string) (core.Toolset, error)
	// HasModel reports whether a provider has the model that a skill wants; nil
	// means that it has. Without it, the session's model is used, with a warning.
	HasModel func(provider, model string) bool
}

// addSkills adds the tools of the skills. It reads nothing yet.
func (a *Agent) addSkills(ctx context.Context) error {
	o := a.opts.Skills
	if o.Library == nil {
		return nil
	}
	if o.Usage != "" {
		a.usage = skills.NewUsage(o.Usage)
	}
	open := o.OpenToolset
	if open == nil {
		open = a.openToolset
	}
	a.skills = skills.NewTools(skills.ToolsOptions{
		Library: o.Library, Usage: a.usage, ScriptTimeout: o.ScriptTimeout, OpenToolset: open,
		AddToolset: func(set core.Toolset) error { return a.tools.Add(context.WithoutCancel(ctx), set) },
		Problem:    func(err error) { a.opts.Logger.WarnContext(ctx, "skill", "error", err) },
		Fork:       a.fork, Adjust: a.adjust, Activated: a.activated,
	})
	if err := a.tools.AddBuiltin(ctx, a.skills); err != nil {
		return fmt.Errorf("skills: %w", err)
	}
	return nil
}

// openToolset opens a skill's binary as a plugin.
func (a *Agent) openToolset(path, sum string) (core.Toolset, error) {
	if a.plugins == nil {
		return nil, fmt.Errorf("cannot open %s: plugins are disabled", path)
	}
	return a.plugins.OpenToolset(path, sum)
}

// skillSource discloses skills to a session, which may be set up later.
func (a *Agent) skillSource(s *Session) core.ContextSource {
	opts := skills.SourceOptions{
		Library: a.opts.Skills.Library, Max: a.opts.Skills.Max, Usage: a.usage, Tools: a.skills,
		Conversation: func() []model.Message { return s.Messages() },
		Exists: func(ctx context.Context, path string) bool {
			_, err := a.env.Files().Stat(ctx, path)
			return err == nil
		},
		Adjust: func(name string, effort model.Effort) { a.adjust(core.SessionInfo{ID: s.ID()}, name, effort) },
	}
	if a.subagents != nil {
		opts.Fork = func(f skills.Fork) {
			s.NotifyAfter(func(ctx context.Context) string { return f.Result(a.requestedFork(ctx, f)) })
		}
	}
	return skills.NewSource(opts)
}

// withBreadcrumb appends the number of skills to a profile's prompt. Like the rest
// of the prompt, it does not change during the session.
func (a *Agent) withBreadcrumb(p core.Profile) core.Profile {
	if a.skills == nil {
		return p
	}
	prompt := p.Prompt
	p.Prompt = func(ctx context.Context, req core.PromptRequest) (string, error) {
		text := ""
		if prompt != nil {
			var err error
			if text, err = prompt(ctx, req); err != nil {
				return "", err
			}
		}
		crumb := a.opts.Skills.Library.Breadcrumb()
		if crumb == "" {
			return text, nil
		}
		return strings.TrimSuffix(text, "\n") + "\n\n" + crumb + "\n", nil
	}
	return p
}
