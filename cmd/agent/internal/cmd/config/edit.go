package config

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
)

// valueInfo is a setting as lists show it.
type valueInfo struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Layer  string `json:"layer"`
	Source string `json:"source"`
}

func infoOfValue(v config.Value) valueInfo {
	return valueInfo{v.Key, v.Value, v.Source.Layer.String(), v.Source.String()}
}

func newConfigGet(s *cmdutil.IO) *cobra.Command {
	sh := &setup.Flags{}
	var reveal, asJSON bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of a setting that is in force",
		Long: "get prints the value that holds after all layers: text as it is, anything else as JSON.\n" +
			"A key to a service is printed as [redacted] unless --reveal is given.",
		Example: "  agent config get agent.maxRounds",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := sh.Load(s)
			if err != nil {
				return err
			}
			v, err := set.Lookup(args[0])
			if err != nil {
				return err
			}
			if secret, ok := v.Value.(config.Secret); ok && reveal {
				if v.Value, err = secret.Reveal(cmd.Context()); err != nil {
					return err
				}
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, infoOfValue(v))
			}
			_, err = fmt.Fprintln(s.Out, cmdutil.ValueText(v.Value))
			return err
		},
	}
	sh.Register(cmd.Flags(), setup.SessionFlags)
	cmd.Flags().BoolVar(&reveal, "reveal", false, "print a key to a service as it is; a command that gives it is run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: key, value and where it comes from")
	return cmd
}

func newConfigList(s *cmdutil.IO) *cobra.Command {
	sh := &setup.Flags{}
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the settings in force and where each comes from",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			set, err := sh.Load(s)
			if err != nil {
				return err
			}
			infos := []valueInfo{}
			for _, v := range set.Values() {
				if all || v.Source.Layer != config.LayerDefault {
					infos = append(infos, infoOfValue(v))
				}
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, infos)
			}
			if len(infos) == 0 {
				fmt.Fprintln(s.Err, "All settings are at their defaults; --all lists them.")
				return nil
			}
			w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "KEY\tVALUE\tFROM")
			for _, i := range infos {
				fmt.Fprintf(w, "%s\t%s\t%s\n", i.Key, display.OneLine(cmdutil.ValueText(i.Value), 60), i.Source)
			}
			return w.Flush()
		},
	}
	sh.Register(cmd.Flags(), setup.SessionFlags)
	cmd.Flags().BoolVar(&all, "all", false, "list also the settings that are at their defaults")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// editFlags say which settings file a command changes.
type editFlags struct {
	project bool
	dir     string
}

func (e *editFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&e.project, "project", false, "change ./.agent/settings.json and not your own settings")
	cmd.Flags().StringVarP(&e.dir, "cd", "C", "", "with --project: the settings of `DIR`")
}

// edit changes a settings file. A project whose settings were trusted, or that
// had none, stays trusted: it was the person who changed them.
func (e *editFlags) edit(ctx context.Context, s *cmdutil.IO, change func(config.Target) error) (config.Target, error) {
	home, err := s.AgentHome()
	if err != nil {
		return config.Target{}, err
	}
	if !e.project {
		if e.dir != "" {
			return config.Target{}, cmdutil.Usagef("--cd goes with --project: your own settings hold everywhere")
		}
		target := config.UserFile(home)
		return target, change(target)
	}
	dir := s.WorkDir(e.dir)
	target, store := config.ProjectFile(home, dir), trust.Open(home)
	before, err := store.Check(dir)
	if err != nil {
		return target, err
	}
	if err := change(target); err != nil {
		return target, err
	}
	if before.Status == trust.Trusted || before.Status == trust.Nothing {
		_, err := store.Trust(ctx, dir, time.Now())
		return target, err
	}
	fmt.Fprintf(s.Err, "agent: the directory is not trusted, so this does not hold yet; %s\n", before.Advice())
	return target, nil
}

func newConfigSet(s *cmdutil.IO) *cobra.Command {
	e := &editFlags{}
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting in your settings file, or in the project's",
		Long: "set writes one value to ~/.agent/settings.json and leaves the rest of the file as it stands. A VALUE is JSON or,\n" +
			"for text, the bare text; - reads it from stdin, so that a key to a service is in no shell history.\n" +
			"What is not valid is not written.",
		Example: "  agent config set agent.maxRounds 80\n" +
			"  agent config set --project permissions.deny '[\"fs-write(./migrations/**)\"]'\n" +
			"  agent config set providers.openai.apiKey '!pass show openai'",
		Args: cmdutil.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, value := args[0], args[1]
			if value == "-" {
				text, err := cmdutil.ReadAll(cmd.Context(), s.In)
				if err != nil {
					return err
				}
				value = strings.TrimRight(text, "\r\n")
			}
			target, err := e.edit(cmd.Context(), s, func(t config.Target) error { return t.Set(cmd.Context(), key, value) })
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s is set in %s.\n", key, target.Path)
			return e.hint(s, target, key)
		},
	}
	e.register(cmd)
	return cmd
}

// hint says when another layer keeps a key from having the value that was set.
func (e *editFlags) hint(s *cmdutil.IO, target config.Target, key string) error {
	dir := s.WorkDir(e.dir)
	isTrusted, _ := setup.Trusted(target.Home, dir)
	loaded, err := config.Load(config.LoadOptions{Env: s.Env, Managed: s.ManagedSettings, Home: cmdutil.UserHome(), Cwd: dir, Trusted: isTrusted})
	if err != nil {
		return nil // another file is broken: whoever uses it is told
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
		fmt.Fprintf(s.Err, "agent: here, %s holds the value that counts\n", v.Source)
	}
	return nil
}

func newConfigUnset(s *cmdutil.IO) *cobra.Command {
	e := &editFlags{}
	cmd := &cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a setting from your settings file, or from the project's",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			removed := false
			target, err := e.edit(cmd.Context(), s, func(t config.Target) (err error) {
				removed, err = t.Unset(cmd.Context(), args[0])
				return err
			})
			if err != nil {
				return err
			}
			text := "%s is removed from %s.\n"
			if !removed {
				text = "%s is not set in %s.\n"
			}
			_, err = fmt.Fprintf(s.Out, text, args[0], target.Path)
			return err
		},
	}
	e.register(cmd)
	return cmd
}
