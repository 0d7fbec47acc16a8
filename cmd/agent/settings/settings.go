package settings

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/keyring"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Options say which settings to load.
type Options struct {
	Dir      string       // working directory; empty = the current one
	Set      []string     // overrides, as KEY=VALUE
	Warnings io.Writer    // takes what is wrong but no error, one line each; nil drops it
	Logger   *slog.Logger // nil = silent
}

// Settings are those of the administrator, the user, and, if the user trusts it, the
// project.
type Settings struct {
	set    *setup.Setup
	logger *slog.Logger
}

// Load reads the settings. The error names the file, the line and what is wrong.
func Load(o Options) (*Settings, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	flags := setup.Flags{Dir: o.Dir, Sets: o.Set}
	set, err := flags.Load(&cmdutil.IO{
		In: eof{}, Out: io.Discard, Err: cmp.Or(o.Warnings, io.Discard), Env: os.Getenv, Cwd: cwd,
		ManagedSettings: setup.ManagedSettings(os.Getenv), Keyring: keyring.New(os.Getenv),
	})
	if err != nil {
		return nil, err
	}
	return &Settings{set, cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}, nil
}

// eof is a stdin without input.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Agent returns the options of an agent. The error names agent types that cannot be
// used; the options have the others.
func (s *Settings) Agent() (agent.Options, error) {
	o := s.set.AgentOptions(s.logger)
	o.Subreaper, o.PDFCommand = false, nil // for the agent command alone
	var failed []error
	o.Agents, failed = s.set.Definitions()
	return o, errors.Join(failed...)
}

// Session returns the options of a session with a model, as [PROVIDER/]MODEL; empty is
// the default model, with its fallbacks.
func (s *Settings) Session(ctx context.Context, name string) (agent.SessionOptions, error) {
	p, err := s.Provider(ctx, name)
	if err != nil {
		return agent.SessionOptions{}, err
	}
	o := agent.SessionOptions{Provider: p, SaveRules: s.set.SaveRules, Ephemeral: !s.set.Settings.Session.Save}
	err = s.set.SessionOptions(&o)
	return o, err
}

// Provider opens a provider by its name, with the model of its settings, or as
// [PROVIDER/]MODEL; empty is the default one, with its fallbacks.
func (s *Settings) Provider(ctx context.Context, name string) (model.Provider, error) {
	if name == "" {
		return s.set.Providers(ctx)
	}
	names := s.set.Settings.Providers.Names()
	for _, known := range names {
		if known == name {
			return s.set.Switch(ctx, name, "")
		}
	}
	provider, modelName, err := config.SplitModel(name, "", s.set.Settings.Providers.Default, names)
	if err != nil {
		return nil, err
	}
	return s.set.Switch(ctx, cmp.Or(provider, s.set.Settings.Providers.Default), modelName)
}
