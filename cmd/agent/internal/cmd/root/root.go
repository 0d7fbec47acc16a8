package root

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-009c0928/agent/cmd/agent/internal/chat"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/demo"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/doctor"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/mcp"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/permission"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/plugin"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/provider"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/session"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/skill"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/tool"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/trust"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/keyring"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// Main runs the command line of this process and returns its exit code.
func Main() int { return mainWith(setup.ManagedSettings(os.Getenv), setup.BundledPlugins) }

// mainWith is Main with another settings file of who runs the machine, and of a
// program that serves other plugins.
func mainWith(managed string, plugins cmdutil.OwnPlugins) int {
	cwd, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "agent: the working directory cannot be read: %v\n", err)
		return cmdutil.ExitError
	}
	return Run(context.Background(), os.Args[1:], &cmdutil.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: term.IsTerminal(int(os.Stdin.Fd())), OutTTY: term.IsTerminal(int(os.Stdout.Fd())), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Env: os.Getenv, Cwd: cwd, ManagedSettings: managed, Terminal: os.Stdout, Keyring: keyring.New(os.Getenv), Bundled: plugins,
	})
}

// Run runs one command line.
func Run(ctx context.Context, args []string, s *cmdutil.IO) int {
	out := &cmdutil.CheckedWriter{Writer: s.Out}
	s.Out = out
	root := NewCmd(s)
	root.SetArgs(args)
	if completes(args) {
		addCompletions(root, s)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if out.Err != nil && (err == nil || errors.Is(err, out.Err)) {
		err = fmt.Errorf("the output cannot be written: %w", out.Err)
	}
	var status *cmdutil.StatusError
	if err != nil && !errors.As(err, &status) {
		fmt.Fprintf(s.Err, "agent: %v\n", err)
		if usage := (*cmdutil.UsageError)(nil); errors.As(err, &usage) {
			fmt.Fprintf(s.Err, "Run '%s --help' for usage.\n", cmd.CommandPath())
		}
		if advised := (*cmdutil.AdvisedError)(nil); errors.As(err, &advised) {
			fmt.Fprintf(s.Err, "\n%s", advised.Advice)
		}
	}
	return cmdutil.ExitCode(err)
}

// NewCmd builds the command tree.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := &run.Options{IO: s, Flags: &setup.Flags{}}
	root := &cobra.Command{
		Use:   "agent [flags] [PROMPT]",
		Short: "A coding agent: a model, tools, and your permission",
		Long: "agent runs a language model with tools in this directory: on a terminal as an interactive session,\n" +
			"with -p one prompt to its end. Every tool call passes a permission policy; every session is written down.\n\n" +
			"Try it without a key:  agent demo",
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			// After "--" everything is the prompt, also what looks like a command.
			meant := len(args) == 1 && cmd.ArgsLenAtDash() < 0 && cmdutil.NearCommand(cmd, args[0]) != ""
			switch {
			case o.Print:
				return o.Run(cmd.Context(), args)
			case s.InTTY && s.OutTTY && !meant:
				return chat.Interactive(o, cmd.Context(), args)
			case len(args) == 0:
				return cmd.Help()
			}
			return cmdutil.UnknownCommand(cmd, args[0], fmt.Sprintf("to run it as a prompt: agent exec %q", args[0]))
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(cmdutil.FlagError)
	o.Register(root.Flags())
	root.Flags().BoolVarP(&o.Print, "print", "p", false, "run the prompt once and print the answer; the same as exec")
	root.AddCommand(
		run.NewCmd(s),
		demo.NewCmd(s),
		tool.NewCmd(s),
		mcp.NewCmd(s),
		skill.NewCmd(s),
		plugin.NewCmd(s),
		plugin.NewInternalCmd(s),
		permission.NewCmd(s),
		config.NewCmd(s),
		provider.NewCmd(s),
		provider.NewModelsCmd(s),
		doctor.NewCmd(s),
		session.NewCmd(s),
		chat.NewResumeCmd(s),
		trust.NewCmd(s),
		newCompletion(s),
		newVersion(s),
	)
	return root
}
