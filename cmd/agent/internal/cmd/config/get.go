package config

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// valueInfo is a setting in JSON.
type valueInfo struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Layer  string `json:"layer"`
	Source string `json:"source"`
}

func infoOf(v config.Value) valueInfo {
	return valueInfo{v.Key, v.Value, v.Source.Layer.String(), v.Source.String()}
}

type getOptions struct {
	*cmdutil.IO
	flags        setup.Flags
	reveal, json bool
}

func newGetCmd(s *cmdutil.IO) *cobra.Command {
	o := &getOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the effective value of a setting",
		Long: "Print the value of a setting after all files, environment variables and flags: text as it is, anything else\n" +
			"as JSON. API keys are printed as [redacted] unless --reveal is given.",
		Example: "  agent config get agent.maxRounds",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.OverrideFlags)
	cmd.Flags().BoolVar(&o.reveal, "reveal", false, "print API keys; if a command provides the key, run it")
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *getOptions) run(ctx context.Context, key string) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	v, err := set.Lookup(key)
	if err != nil {
		return err
	}
	if secret, ok := v.Value.(config.Secret); ok && o.reveal {
		if v.Value, err = secret.Reveal(ctx); err != nil {
			return err
		}
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, infoOf(v))
	}
	_, err = fmt.Fprintln(o.Out, cmdutil.ValueText(v.Value))
	return err
}

type listOptions struct {
	*cmdutil.IO
	flags     setup.Flags
	all, json bool
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List settings and where they come from",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.OverrideFlags)
	cmd.Flags().BoolVar(&o.all, "all", false, "include settings at their defaults")
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *listOptions) run() error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	infos := []valueInfo{}
	for _, v := range set.Values() {
		if o.all || v.Source.Layer != config.LayerDefault {
			infos = append(infos, infoOf(v))
		}
	}
	switch {
	case o.json:
		return cmdutil.WriteJSON(o.Out, infos)
	case len(infos) == 0:
		fmt.Fprintln(o.Err, "All settings are at their defaults; to list them:  agent config list --all")
		return nil
	}
	t := cmdutil.NewTable(o.Out, "KEY", "VALUE", "SOURCE")
	for _, i := range infos {
		t.Row(i.Key, display.OneLine(cmdutil.ValueText(i.Value), 60), i.Source)
	}
	return t.Flush()
}
