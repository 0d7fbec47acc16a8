package provider

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

func NewModelsCmd(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the models that a provider has",
		Long: "models asks the provider in use, or that of --provider, which models it has. The one that the settings\n" +
			"name is marked; if the provider does not have it, that is said on stderr. Of models that are known, the context\n" +
			"window is shown and the price of a million tokens.",
		Example: "  agent models\n  agent models --provider openai --json",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := sh.Load(s)
			if err != nil {
				return err
			}
			names, err := set.ProviderModels(cmd.Context())
			if err != nil {
				return cmdutil.Advise(err, setup.FirstRunAdvice(cmd.Context(), err))
			}
			return printModels(s, set, names, asJSON)
		},
	}
	sh.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags|setup.ProviderFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printModels(s *cmdutil.IO, set *setup.Setup, names []string, asJSON bool) error {
	provider, chosen := set.Settings.Providers.Default, set.Loaded.Model()
	if !slices.Contains(names, chosen) {
		fmt.Fprintf(s.Err, "agent: %s does not list the model of the settings, %s; set %s or give --model\n", provider, chosen, set.Settings.ModelKey(provider))
	}
	infos := []setup.ModelInfo{}
	for _, name := range names {
		infos = append(infos, set.Model(provider, name))
	}
	if asJSON {
		return cmdutil.WriteJSON(s.Out, infos)
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, i := range infos {
		fmt.Fprintln(w, i)
	}
	return w.Flush()
}
