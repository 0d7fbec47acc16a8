package provider

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("providers", "List, test and set up where models are reached", newProvidersList(s), newProvidersTest(s), newProvidersSetup(s))
}

func newProvidersList(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use: "list", Short: "List the providers: endpoint, model, whether there is a key", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			set, err := sh.Load(s)
			if err != nil {
				return err
			}
			infos := []setup.ProviderInfo{}
			for _, k := range setup.ProviderKinds() {
				infos = append(infos, set.Describe(k, s.Env))
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, infos)
			}
			return printProviders(s.Out, infos)
		},
	}
	sh.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags|setup.ProviderFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printProviders(out io.Writer, infos []setup.ProviderInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  NAME\tENDPOINT\tMODEL\tKEY")
	for _, i := range infos {
		mark := " "
		if i.Default {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", mark, i.Name, i.Endpoint, i.Model, i.Key)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\n* is the default. agent providers test [NAME] tries one, agent providers setup changes them.")
	return err
}

func newProvidersTest(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use:   "test [NAME]",
		Short: "Make one real call to a provider, and say what failed",
		Long: "test sends a few words to the model of the provider in use, or of the one named, and waits for the answer.\n" +
			"Nothing is retried. The exit code is 3 if the provider is not configured and 4 if the call failed.",
		Example:   "  agent providers test\n  agent providers test openai --model gpt-5-mini",
		Args:      cmdutil.Args(cobra.MaximumNArgs(1)),
		ValidArgs: setup.ProviderNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sh.TakeProvider(args); err != nil {
				return err
			}
			set, err := sh.Load(s)
			if err != nil {
				return err
			}
			result, err := set.Call(cmd.Context(), s.Env)
			if asJSON {
				if perr := cmdutil.WriteJSON(s.Out, result); perr != nil {
					return perr
				}
				if err != nil {
					return &cmdutil.StatusError{Code: cmdutil.ExitCode(err)}
				}
				return nil
			}
			if err != nil {
				return cmdutil.Advise(fmt.Errorf("%s: %w", result.Error.Code, err), "What to do: "+result.Error.Fix+"\n")
			}
			_, err = fmt.Fprintf(s.Out, "%s: %s answered in %d ms (%s)\n", result.Provider, result.Model, result.LatencyMS, result.Endpoint)
			return err
		},
	}
	sh.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags|setup.ProviderFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
