package chat

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/planmode"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// The settings of an interactive session.
const (
	settingModel = "model"
	settingMode  = "mode"

	settingEffort = "effort"
)

// opener returns what opens the session of a task.
func (c *chat) opener(t *run.Task) host.Opener {
	return func(ctx context.Context, _ host.Open, asker core.Asker) (host.Opened, error) {
		a, err := c.set.Environment.OpenAgent(ctx, t.Agent)
		if err != nil {
			return host.Opened{}, err
		}
		if p, ok := a.Policy().(*permissions.Policy); ok {
			c.policy = p // it knows the environment
		}
		setup.ReportPlugins(c.IO, a)
		t.Session.Asker = asker
		s, err := a.NewSession(ctx, t.Session)
		if err != nil {
			return host.Opened{}, errors.Join(err, a.Close())
		}
		setup.WarnUnrecorded(ctx, s, t.Agent.Permissions.AgentHome, t.Session.Ephemeral)
		setup.WarnIncomplete(c.IO, t.Agent.Skills.Library)
		c.root = s
		c.agent, c.opts, c.model = a, t.Session, t.Session.Provider.Info().Model
		return host.Opened{Session: s, Settings: c.settings(s), Close: a.Close, Waiting: c.queue.Deliver}, nil
	}
}

// settings returns what can be changed in an open session.
func (c *chat) settings(s *agent.Session) []host.Setting {
	var modes []string
	for _, m := range permissions.Modes() {
		modes = append(modes, string(m))
	}
	return []host.Setting{{
		ID: settingModel, Name: "Model", Category: "model", Value: c.modelName(), Given: c.Changed("model"),
		Set: func(name string) error { return c.useModel(s, name) },
	}, {
		ID: settingMode, Name: "Permission mode", Category: "mode", Value: string(c.mode()), Values: modes, Given: c.Changed("permission-mode"),
		Lapse: setup.LapsingModes(),
		Set:   func(mode string) error { return c.useMode(s, permissions.Mode(mode)) },
	}, {
		ID: settingEffort, Name: "Effort", Category: "thought_level", Value: string(c.opts.Request.Effort), Values: efforts(), Given: c.Changed("effort"),
		Set: func(level string) error { return c.useEffort(s, level) },
	}}
}

// useModel makes a session use another model, and a provider's if it is named.
func (c *chat) useModel(s *agent.Session, name string) error {
	ctx := context.Background()
	c.mu.Lock()
	using := c.opts.Provider.Info().Name
	c.mu.Unlock()
	wanted, name, err := config.SplitModel(name, "", using, c.set.Settings.Providers.Names())
	if err != nil {
		return err
	}
	var p model.Provider
	if wanted != "" && wanted != using {
		if p, err = c.set.Switch(ctx, wanted, name); err != nil {
			return err
		}
		p, using = setup.Advising{Provider: p}, wanted
	} else if err := c.unknownProvider(ctx, using, name); err != nil {
		return err
	}
	prof, err := c.set.Profile(using, name)
	if err != nil {
		return err
	}
	s.SetModel(p, name)
	s.SetProfile(prof)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model, c.opts.Profile = name, prof
	if p != nil {
		c.opts.Provider = p
	}
	return nil
}

// useMode switches the permission mode of a session and its subagents, from the next
// tool call on.
func (c *chat) useMode(s *agent.Session, m permissions.Mode) error {
	if m == permissions.ModeWorkspace {
		if err := c.workspaceMode(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	was := c.policy.Mode()
	c.policy = c.policy.WithMode(m)
	s.SetPolicy(c.policy)
	c.mu.Unlock()
	c.plan.Set(m == permissions.ModePlan)
	if m == permissions.ModePlan && was != m && s.State() == core.StateProcessing {
		s.Notify(planmode.Text)
	}
	if (was == permissions.ModePlan) == (m == permissions.ModePlan) || c.set.Settings.Agent.PlanModel == "" {
		return nil
	}
	name := c.otherwise
	if m == permissions.ModePlan {
		c.otherwise, name = c.modelName(), c.set.Settings.Agent.PlanModel
	}
	if err := c.useModel(s, name); err != nil {
		return fmt.Errorf("the mode is %s, but the model stays %s: %w", m, c.modelName(), err)
	}
	return nil
}

// change changes a setting of the session.
func (c *chat) change(ctx context.Context, setting, value string) error {
	_, err := c.session.Do(ctx, host.Command{Type: "set", Setting: setting, Value: value})
	return err
}
