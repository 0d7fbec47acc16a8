package config

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
)

// editOptions are the options of commands that change a settings file.
type editOptions struct {
	*cmdutil.IO
	project bool
	dir     string
}

func (o *editOptions) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.project, "project", false, "change ./.agent/settings.json instead of your settings")
	cmd.Flags().StringVarP(&o.dir, "cd", "C", "", "with --project: change the settings of `DIR`")
}

// edit changes a settings file. A project that was trusted stays trusted: the user
// made the change. One that was not is only trusted if the user says so.
func (o *editOptions) edit(ctx context.Context, change func(config.Target) error) (config.Target, error) {
	home, err := o.AgentHome()
	if err != nil {
		return config.Target{}, err
	}
	if !o.project {
		if o.dir != "" {
			return config.Target{}, cmdutil.Usagef("--cd requires --project: your settings are the same in all directories")
		}
		target := config.UserFile(home)
		return target, change(target)
	}
	dir := o.WorkDir(o.dir)
	target, store := config.ProjectFile(home, dir), trust.Open(home)
	before, err := store.Check(dir)
	if err != nil {
		return target, err
	}
	if err := change(target); err != nil {
		return target, err
	}
	now, err := store.Check(dir)
	if err != nil {
		return target, err
	}
	trusted := before.Status == trust.Trusted
	if before.Status == trust.Nothing && now.Status != trust.Nothing && o.InTTY && o.ErrTTY {
		question := fmt.Sprintf("Trust %s, so that its settings are used? Where a sandbox works, commands then run in it without asking.", dir)
		if trusted, err = o.Confirm(ctx, question, false); err != nil {
			return target, err
		}
	}
	if trusted {
		_, err := store.Trust(ctx, dir, time.Now())
		return target, err
	}
	if advice := now.Advice(); advice != "" {
		fmt.Fprintf(o.Err, "agent: not used yet, since the directory is not trusted; %s\n", advice)
	}
	return target, nil
}

type setOptions struct{ editOptions }

func newSetCmd(s *cmdutil.IO) *cobra.Command {
	o := &setOptions{editOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting",
		Long: "Write a value to your settings file, or to the project's, and leave the rest of the file unchanged. VALUE is\n" +
			"JSON or plain text; - reads it from stdin, which keeps API keys out of the shell history. Invalid values are\n" +
			"not written.",
		Example: "  agent config set agent.maxRounds 80\n" +
			"  agent config set --project permissions.deny '[\"fs-write(./migrations/**)\"]'\n" +
			"  agent config set providers.openai.apiKey '!pass show openai'",
		Args: cmdutil.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	o.register(cmd)
	return cmd
}

func (o *setOptions) run(ctx context.Context, key, value string) error {
	if value == "-" {
		text, err := cmdutil.ReadAll(ctx, o.In)
		if err != nil {
			return err
		}
		value = strings.TrimRight(text, "\r\n")
	}
	target, err := o.edit(ctx, func(t config.Target) error { return t.Set(ctx, key, value) })
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Set %s in %s.\n", key, target.Path)
	return o.warnOverridden(target, key)
}

// warnOverridden prints which other layer overrides the value that was set.
func (o *setOptions) warnOverridden(target config.Target, key string) error {
	dir := o.WorkDir(o.dir)
	isTrusted, _ := setup.Trusted(target.Home, dir)
	loaded, err := config.Load(config.LoadOptions{Env: o.Env, Managed: o.ManagedSettings, Home: cmdutil.UserHome(), Cwd: dir, Trusted: isTrusted})
	if err != nil {
		return nil // another file is invalid: commands that use it report that
	}
	v, err := loaded.Lookup(key)
	if err != nil {
		return err
	}
	layer := config.LayerUser
	if target.Project {
		layer = config.LayerProject
	}
	if v.Source.Layer > layer && !setup.IsRuleList(key) {
		fmt.Fprintf(o.Err, "agent: overridden in this directory by %s\n", v.Source)
	}
	return nil
}

type unsetOptions struct{ editOptions }

func newUnsetCmd(s *cmdutil.IO) *cobra.Command {
	o := &unsetOptions{editOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a setting from your settings file or the project's",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.register(cmd)
	return cmd
}

func (o *unsetOptions) run(ctx context.Context, key string) error {
	removed := false
	target, err := o.edit(ctx, func(t config.Target) (err error) {
		removed, err = t.Unset(ctx, key)
		return err
	})
	if err != nil {
		return err
	}
	text := "Removed %s from %s.\n"
	if !removed {
		text = "%s is not set in %s.\n"
	}
	_, err = fmt.Fprintf(o.Out, text, key, target.Path)
	return err
}
