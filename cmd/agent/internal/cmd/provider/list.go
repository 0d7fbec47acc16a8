package provider

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

type listOptions struct {
	*cmdutil.IO
	flags setup.Flags
	all   bool // with presets that are not configured
	json  bool
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List providers with their endpoint, model and key",
		Long: "List providers with their endpoint, their model and the source of their key. The default is marked with *.\n" +
			"Presets without a key or other settings are listed only with --all.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	o.flags.Register(cmd.Flags(), providerFlags)
	cmd.Flags().BoolVar(&o.all, "all", false, "list all presets, too")
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *listOptions) run() error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	infos := []setup.ProviderInfo{}
	for _, k := range set.ProviderKinds() {
		if !o.all && !set.Configured(k) {
			continue
		}
		infos = append(infos, set.Describe(k, o.Env))
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, infos)
	}
	return o.print(infos)
}

func (o *listOptions) print(infos []setup.ProviderInfo) error {
	t := cmdutil.NewTable(o.Out, "  NAME", "ENDPOINT", "MODEL", "KEY")
	for _, i := range infos {
		mark := "  "
		if i.Default {
			mark = "* "
		}
		t.Row(mark+i.Name, i.Endpoint, i.Model, i.Key)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o.Out, "\nTest one with agent providers test [NAME], configure one with agent providers setup [NAME].")
	return err
}
