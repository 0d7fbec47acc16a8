package acp

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// open opens a session with the settings of its directory.
func (o *options) open(ctx context.Context, r host.Open, asker core.Asker, do acp.Do) (*acp.Opened, error) {
	if r.ID != "" {
		home, err := o.AgentHome()
		if err != nil {
			return nil, err
		}
		if _, err := store.Stat(agent.SessionsDir(home), r.ID); err != nil {
			return nil, err
		}
	}
	opts := o.sessionOptions(r)
	d, err := opts.Drive(ctx, asker, do, func(a *agent.Options, s *agent.SessionOptions) {
		a.MCP.Servers = merged(a.MCP.Servers, r.MCP)
		if opts.Local() { // the editor has the files of this machine
			s.ToolEnv = r.ToolEnv
		}
	})
	if err != nil {
		return nil, signIn(err)
	}
	opened := &acp.Opened{
		Opened: d.Opened, Dir: d.Agent.Env().Info().Dir, Commands: commands(d), Models: models(d.Setup, o.Env), Preview: d.Agent.Preview, Reject: d.Deny, Cost: d.Cost,
		Window: func() int {
			provider, name := d.Model()
			profile, err := d.Setup.Profile(provider, name)
			if err != nil {
				return 0
			}
			return profile.ContextWindow
		},
	}
	return opened, nil
}

// models returns the models of the providers that can be used.
func models(set *setup.Setup, env func(string) string) []string {
	return slices.DeleteFunc(set.KnownModels(), func(name string) bool {
		provider, _, _ := strings.Cut(name, "/")
		kind, err := set.FindProvider(provider)
		return err != nil || set.Describe(kind, env).Key.Lacking()
	})
}

// merged adds the servers of the editor, which replace those of the same name.
func merged(own, editors []mcp.Configured) []mcp.Configured {
	own = slices.DeleteFunc(slices.Clone(own), func(c mcp.Configured) bool {
		return slices.ContainsFunc(editors, func(e mcp.Configured) bool { return e.Name == c.Name })
	})
	return append(own, editors...)
}

// commands returns the slash commands of a session. Of two with the same name, the
// first has it and the other is called SCOPE:NAME.
func commands(d *run.Driven) (list []acp.Command) {
	add := func(scope string, c acp.Command) {
		if slices.ContainsFunc(list, func(o acp.Command) bool { return o.Name == c.Name }) {
			c.Name = scope + ":" + c.Name
		}
		list = append(list, c)
	}
	add("", acp.Command{Name: "compact", Hint: "what the summary must cover", Summary: "replace the conversation by a summary"})
	custom, _ := d.Setup.CustomCommands() // interactive sessions report those that are invalid
	for _, c := range custom {
		add(c.Scope, acp.Command{Name: c.Name, Hint: c.Hint, Summary: c.Summary, Run: func(_ context.Context, args string) (string, string, error) {
			return "", c.Prompt(args, d.Setup.Dir), nil
		}})
	}
	if lib := d.Setup.SkillOptions().Library; lib != nil {
		for _, s := range lib.Catalog().Active() {
			if !s.NoUser { // the session itself adds the skill that a prompt names
				add(string(s.Scope), acp.Command{Name: s.Name, Hint: s.ArgumentHint, Summary: display.OneLine(s.Brief, 200)})
			}
		}
	}
	if d.Agent.Plugins() != nil {
		for _, c := range d.Agent.Plugins().Commands() {
			add(c.Plugin, acp.Command{Name: c.Name, Hint: c.Args, Summary: c.Summary, Run: func(ctx context.Context, args string) (string, string, error) {
				reply, err := c.Run(ctx, core.SessionInfo{ID: d.Session.ID(), Dir: d.Setup.Dir}, strings.TrimSpace(args))
				return reply.Text, reply.Prompt, err
			}})
		}
	}
	return list
}
