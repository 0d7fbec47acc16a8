package run

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/planmode"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// Driven is a session for a driver of sdk/host other than exec.
type Driven struct {
	host.Opened
	Setup *setup.Setup
	Agent *agent.Agent
	task  *Task

	mu             sync.Mutex
	provider, name string // of the model
	mode           permissions.Mode
	policy         *permissions.Policy // nil without rules
	plan           *planmode.Mode
}

// Drive opens a session with the options, which are used once. Change adds to what
// the settings make of the agent and the session. Do carries out commands of tools, such
// as to leave mode plan, when the session is open.
func (o *Options) Drive(ctx context.Context, asker core.Asker, do func(context.Context, host.Command) error, change func(*agent.Options, *agent.SessionOptions)) (*Driven, error) {
	set, err := o.Load(o.IO)
	if err != nil {
		return nil, err
	}
	t := &Task{IO: o.IO, Format: FormatStream}
	if err := o.Configure(ctx, t, set); err != nil {
		return nil, err
	}
	t.Session.SaveRules, t.Session.Asker = set.SaveRules, asker
	change(&t.Agent, &t.Session)
	d := &Driven{Setup: set, task: t}
	d.addPlanMode(do)
	a, err := t.place.OpenAgent(ctx, t.Agent)
	if err != nil {
		return nil, err
	}
	setup.ReportPlugins(o.IO, a)
	missing := t.ready(ctx, a) // the session works without its MCP servers
	s, err := a.NewSession(ctx, t.Session)
	if err != nil {
		return nil, errors.Join(setup.SessionAdvice(err, t.Session.Resume), a.Close())
	}
	if missing != nil {
		s.Warn(ctx, "MCP", missing.Error())
	}
	if t.Session.Journal == nil { // else somebody else records it
		setup.WarnUnrecorded(ctx, s, t.Agent.Home, t.Session.Ephemeral)
	}
	setup.WarnIncomplete(o.IO, t.Agent.Skills.Library)
	d.Agent = a
	d.Opened = host.Opened{Session: s, Close: a.Close}
	d.settings(s)
	return d, nil
}

// settings sets the settings of the session: the model may be of any configured
// provider.
func (d *Driven) settings(s *agent.Session) {
	l := &lines{Task: d.task}
	now := l.initEvent(context.Background(), d.Agent, s).Body.(event.Init)
	d.Settings = l.settings(d.Setup, d.Agent, s, now)
	d.provider, d.name, d.mode = now.Provider, now.Model, permissions.Mode(now.Mode)
	d.policy, _ = d.Agent.Policy().(*permissions.Policy)
	for i := range d.Settings {
		setting := &d.Settings[i]
		switch setting.ID {
		case "model":
			setting.Value = d.provider + "/" + d.name
			setting.Set = d.locked(func(value string) (err error) {
				provider, name, err := d.Setup.UseModel(context.Background(), s, d.provider, value)
				if err == nil {
					d.provider, d.name = provider, name
				}
				return err
			})
		case "mode":
			setting.Set = d.locked(func(value string) error {
				was := d.mode
				d.mode = permissions.Mode(value)
				s.SetPolicy(d.policy.WithMode(d.mode))
				d.plan.Set(d.mode == permissions.ModePlan)
				if d.mode == permissions.ModePlan && was != d.mode && s.State() == core.StateProcessing {
					s.Notify(planmode.Text)
				}
				return nil
			})
		case "effort":
			setting.Values = append([]string{""}, setting.Values...) // the model's default
		}
	}
}

// addPlanMode adds mode plan to the agent and the session.
func (d *Driven) addPlanMode(do func(context.Context, host.Command) error) {
	dir := ""
	if home := d.task.Agent.Home; home != "" {
		dir = filepath.Join(home, "plans")
	}
	runModes := func() (list []permissions.Mode) {
		possible := modes(d.Setup, d.policy)
		for _, m := range []permissions.Mode{permissions.ModeDefault, permissions.ModeAcceptEdits, permissions.ModeWorkspace} {
			if slices.Contains(possible, string(m)) {
				list = append(list, m)
			}
		}
		return list
	}
	d.plan = planmode.New(dir, runModes, func(ctx context.Context, m permissions.Mode) error {
		return do(ctx, host.Command{Type: "set", Setting: "mode", Value: string(m)})
	})
	d.plan.Set(d.task.Mode == string(permissions.ModePlan))
	d.task.Agent.Toolsets = append(d.task.Agent.Toolsets, d.plan)
	d.task.Session.Context = append(d.task.Session.Context, d.plan)
}

// locked makes a function run alone.
func (d *Driven) locked(f func(string) error) func(string) error {
	return func(value string) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return f(value)
	}
}

// Model returns the current provider and model.
func (d *Driven) Model() (provider, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.provider, d.name
}

// Deny denies what the rules match, from now on and in later sessions.
func (d *Driven) Deny(ctx context.Context, rules []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.policy == nil {
		return errors.New("this session has no permission rules")
	}
	stricter, err := d.policy.WithDenied(rules)
	if err != nil {
		return err
	}
	d.policy = stricter
	d.Session.SetPolicy(stricter.WithMode(d.mode))
	return d.Setup.SaveDenyRules(ctx, rules)
}

// Cost returns the price of a model call in USD; false if it is unknown.
func (d *Driven) Cost(provider, name string, u model.Usage) (float64, bool) {
	if d.task.Session.Cost == nil {
		return 0, false
	}
	return d.task.Session.Cost(provider, name, u)
}
