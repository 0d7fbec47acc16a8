package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// modelInfo is a model as lists show it.
type modelInfo struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Default  bool   `json:"default"` // what the settings name for the provider
}

func newModels(s *streams) *cobra.Command {
	sh, asJSON := &shared{}, false
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the models that a provider has",
		Long: "models asks the provider in use, or that of --provider, which models it has. The one that the settings\n" +
			"name is marked; if the provider does not have it, that is said on stderr.",
		Example: "  agent models\n  agent models --provider openai --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := sh.load(s)
			if err != nil {
				return err
			}
			names, err := set.providerModels(cmd.Context())
			if err != nil {
				return advise(err, firstRun(cmd.Context(), err))
			}
			return printModels(s, set, names, asJSON)
		},
	}
	sh.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printModels(s *streams, set *settings, names []string, asJSON bool) error {
	provider, chosen := set.Settings.Providers.Default, set.Loaded.Model()
	if !slices.Contains(names, chosen) {
		fmt.Fprintf(s.err, "agent: %s does not list the model of the settings, %s; set %s or give --model\n", provider, chosen, set.Settings.ModelKey(provider))
	}
	if asJSON {
		infos := []modelInfo{}
		for _, name := range names {
			infos = append(infos, modelInfo{provider, name, name == chosen})
		}
		return printJSON(s.out, infos)
	}
	for _, name := range names {
		mark := " "
		if name == chosen {
			mark = "*"
		}
		fmt.Fprintf(s.out, "%s %s\n", mark, name)
	}
	return nil
}
