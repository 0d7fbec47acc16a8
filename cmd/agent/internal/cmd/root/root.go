package root

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-009c0928/agent/cmd/agent/internal/chat"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/provider"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/keyring"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/version"
)

// Main runs the command line of this process and returns its exit code.
func Main() int { return mainWith(setup.ManagedSettings(os.Getenv), setup.BundledPlugins()) }

// mainWith is Main with another managed settings file and other bundled plugins.
func mainWith(managed string, plugins cmdutil.Bundled) int {
	cwd, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "agent: working directory: %v\n", err)
		return cmdutil.ExitError
	}
	return execute(context.Background(), os.Args[1:], &cmdutil.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: term.IsTerminal(int(os.Stdin.Fd())), OutTTY: term.IsTerminal(int(os.Stdout.Fd())), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Env: os.Getenv, Cwd: cwd, ManagedSettings: managed, Terminal: os.Stdout, Keyring: keyring.New(os.Getenv), Bundled: plugins,
	})
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, s *cmdutil.IO) int {
	out := &cmdutil.CheckedWriter{Writer: s.Out}
	s.Out = out
	root := newCmd(s, strings.Join(args[:min(1, len(args))], ""))
	root.SetArgs(args)
	if completes(args) {
		addCompletions(root, s)
	}
	cmd, err := cmdutil.CheckHelp(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if out.Err != nil && (err == nil || errors.Is(err, out.Err)) {
		err = fmt.Errorf("writing to stdout: %w", out.Err)
	}
	report(s.Err, cmd, err)
	return cmdutil.ExitCode(err)
}

// report prints an error and its advice.
func report(w io.Writer, cmd *cobra.Command, err error) {
	var status *cmdutil.StatusError
	if err == nil || errors.As(err, &status) {
		return
	}
	fmt.Fprintf(w, "agent: %v\n", err)
	if usage := (*cmdutil.UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(w, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	if advised := (*cmdutil.AdvisedError)(nil); errors.As(err, &advised) {
		fmt.Fprintf(w, "\n%s", advised.Advice)
	}
}

// newCmd returns the command tree, or, if the first word of the command line is
// that of a command, the part of it that can run: no start pays for the flags
// of 30 commands.
func newCmd(s *cmdutil.IO, word string) *cobra.Command {
	o := run.NewOptions(s)
	root := &cobra.Command{
		Use:   "agent [flags] [PROMPT]",
		Short: "A coding agent that asks before it acts",
		Long: "Run a language model with tools in this directory: an interactive session on a terminal, or one prompt\n" +
			"with -p. Every tool call is checked against a permission policy, and every session is saved.\n\n" +
			"Try it without a key:  agent demo",
		Version:           cmdutil.Version(),
		Args:              cobra.ArbitraryArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRoot(cmd, o, args) },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(cmdutil.FlagError)
	root.SetUsageFunc(cmdutil.Usage)
	root.SetHelpCommand(cmdutil.NewHelpCmd())
	root.SetVersionTemplate(version.Line() + "\n")
	if only := commandNamed(word); only != nil {
		root.AddCommand(only(s))
		return root
	}
	o.Register(root.Flags())
	root.Flags().BoolVarP(&o.Print, "print", "p", false, "run the prompt non-interactively and print the answer (same as exec)")
	for _, c := range commands {
		root.AddCommand(c.make(s))
	}
	return root
}

// runRoot runs agent without a command: a prompt or an interactive session.
func runRoot(cmd *cobra.Command, o *run.Options, args []string) error {
	// After "--" everything is the prompt, even if it looks like a command.
	misspelt := len(args) == 1 && cmd.ArgsLenAtDash() < 0 && cmdutil.NearCommand(cmd, args[0]) != ""
	switch {
	case o.Print:
		return o.Run(cmd.Context(), args)
	case o.InTTY && o.OutTTY && !misspelt:
		return chat.Interactive(cmd.Context(), o, args, provider.Configure(o.IO))
	case len(args) == 0 && cmd.Flags().NFlag() == 0:
		return cmd.Help()
	case len(args) == 0:
		return cmdutil.Usagef("an interactive session needs a terminal; without one: agent exec [flags] PROMPT")
	}
	return cmdutil.UnknownCommand(cmd, args[0], fmt.Sprintf("to run it as a prompt: agent exec %q", args[0]))
}

// Tree returns the whole command tree, for man pages and completions.
func Tree() *cobra.Command { return newCmd(&cmdutil.IO{}, "") }
