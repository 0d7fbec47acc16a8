package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// modelInfo is a model as lists show it.
type modelInfo struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Default  bool   `json:"default"` // what the settings name for the provider
	Known    bool   `json:"known"`   // the program or the settings have facts about it
	Context  int    `json:"contextWindow,omitempty"`
	// Prices in USD for a million tokens, where they are known.
	Input  *float64 `json:"inputPrice,omitempty"`
	Output *float64 `json:"outputPrice,omitempty"`
}

// model is a model with what is known of it.
func (s *settings) model(provider, name string) modelInfo {
	m := s.facts(provider, name)
	info := modelInfo{Provider: provider, Name: name, Default: name == s.Loaded.Model(), Known: m.Known || m.Context > 0, Context: m.Context}
	if m.Price != nil && (m.Price.Input > 0 || m.Price.Output > 0) {
		info.Known, info.Input, info.Output = true, &m.Price.Input, &m.Price.Output
	}
	return info
}

// String is the model's line in a list.
func (i modelInfo) String() string {
	var about []string
	if i.Context > 0 {
		about = append(about, fmt.Sprintf("%d k tokens", i.Context/1000))
	}
	if i.Input != nil {
		about = append(about, fmt.Sprintf("$%g in, $%g out", *i.Input, *i.Output))
	}
	mark := " "
	if i.Default {
		mark = "*"
	}
	return strings.TrimRight(mark+" "+i.Name+"\t"+strings.Join(about, ", "), "\t")
}

func newModels(s *streams) *cobra.Command {
	sh, asJSON := &shared{}, false
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the models that a provider has",
		Long: "models asks the provider in use, or that of --provider, which models it has. The one that the settings\n" +
			"name is marked; if the provider does not have it, that is said on stderr. Of models that are known, the context\n" +
			"window is shown and the price of a million tokens.",
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
	infos := []modelInfo{}
	for _, name := range names {
		infos = append(infos, set.model(provider, name))
	}
	if asJSON {
		return printJSON(s.out, infos)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, i := range infos {
		fmt.Fprintln(w, i)
	}
	return w.Flush()
}
