package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

type modelsOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

// NewModelsCmd returns agent models.
func NewModelsCmd(s *cmdutil.IO) *cobra.Command {
	o := &modelsOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List a provider's models",
		Long: "Ask the default provider, or that of --provider, for its models. The configured model is marked with *.\n" +
			"Context window and price per million tokens are shown for known models.",
		Example: "  agent models\n  agent models --provider openai --json",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.Register(cmd.Flags(), providerFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	cmd.AddCommand(newUpdateCmd(s))
	return cmd
}

type updateOptions struct {
	*cmdutil.IO
	flags setup.Flags
}

func newUpdateCmd(s *cmdutil.IO) *cobra.Command {
	o := &updateOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Fetch limits and prices of current models",
		Long: "Fetch the public catalog of models at agent.catalogUrl, and store what it says about the models of known providers.\n" +
			"The limits and prices that it has take precedence over the built-in ones; your settings take precedence over both.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.Register(cmd.Flags(), providerFlags)
	return cmd
}

func (o *updateOptions) run(ctx context.Context) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	c, path, err := set.UpdateModels(ctx, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%d models in %s.\n", c.Len(), path)
	return nil
}

func (o *modelsOptions) run(ctx context.Context) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	names, err := set.ProviderModels(ctx)
	if err != nil {
		return cmdutil.Advise(err, setup.FirstRunAdvice(ctx, err))
	}
	provider, current := set.Settings.Providers.Default, set.Loaded.Model()
	if !slices.Contains(names, current) {
		fmt.Fprintf(o.Err, "agent: %s does not list the configured model %s; set %s or pass --model\n", provider, current, set.Settings.ModelKey(provider))
	}
	infos := []setup.ModelInfo{}
	for _, name := range names {
		infos = append(infos, set.Model(provider, name))
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, infos)
	}
	t := cmdutil.NewTable(o.Out)
	for _, i := range infos {
		t.Row(i)
	}
	return t.Flush()
}
