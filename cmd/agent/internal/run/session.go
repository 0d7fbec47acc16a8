package run

import (
	"context"
	"errors"
	"sync"

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
}

// Drive opens a session with the options, which are used once. Change adds to what
// the settings make of the agent and the session; it may be nil.
func (o *Options) Drive(ctx context.Context, asker core.Asker, change func(*agent.Options, *agent.SessionOptions)) (*Driven, error) {
	set, err := o.Load(o.IO)
	if err != nil {
		return nil, err
	}
	t := &Task{IO: o.IO, Format: FormatStream}
	if err := o.Configure(ctx, t, set); err != nil {
		return nil, err
	}
	t.Session.SaveRules, t.Session.Asker = set.SaveRules, asker
	if change != nil {
		change(&t.Agent, &t.Session)
	}
	a, err := t.place.OpenAgent(ctx, t.Agent)
	if err != nil {
		return nil, err
	}
	setup.ReportPlugins(o.IO, a)
	var s *agent.Session
	if err = t.ready(ctx, a); err == nil {
		s, err = a.NewSession(ctx, t.Session)
	}
	if err != nil {
		return nil, errors.Join(setup.SessionAdvice(err, t.Session.Resume), a.Close())
	}
	setup.WarnUnrecorded(ctx, s, t.Agent.Permissions.AgentHome, t.Session.Ephemeral)
	d := &Driven{Setup: set, Agent: a, task: t}
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
				d.mode = permissions.Mode(value)
				s.SetPolicy(d.policy.WithMode(d.mode))
				return nil
			})
		case "effort":
			setting.Values = append([]string{""}, setting.Values...) // the model's default
		}
	}
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
