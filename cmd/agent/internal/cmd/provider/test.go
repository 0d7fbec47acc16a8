package provider

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

type testOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newTestCmd(s *cmdutil.IO) *cobra.Command {
	o := &testOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "test [NAME]",
		Short: "Test a provider with one model call",
		Long: "Send a few words to the model of the default provider, or of provider NAME, and wait for the answer.\n" +
			"Nothing is retried. The exit code is 3 if the provider is not configured, and 4 if the call fails.",
		Example: "  agent providers test\n  agent providers test openai --model gpt-5-mini",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.flags.Register(cmd.Flags(), providerFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *testOptions) run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if err := o.flags.SetProvider(args[0]); err != nil {
			return err
		}
	}
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	result, err := set.Call(ctx, o.Env)
	switch {
	case o.json:
		return o.printJSON(result, err)
	case err != nil:
		return cmdutil.Advise(fmt.Errorf("%s: %w", result.Error.Code, err), "What to do: "+result.Error.Fix+"\n")
	}
	_, err = fmt.Fprintf(o.Out, "%s: %s answered in %d ms (%s)\n", result.Provider, result.Model, result.LatencyMS, result.Endpoint)
	return err
}

// printJSON prints the result, which has the error of the call. The error is
// not printed again.
func (o *testOptions) printJSON(result setup.CallResult, failed error) error {
	if err := cmdutil.WriteJSON(o.Out, result); err != nil {
		return err
	}
	if failed != nil {
		return &cmdutil.StatusError{Code: cmdutil.ExitCode(failed)}
	}
	return nil
}
