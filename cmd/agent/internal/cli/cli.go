package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/keyring"
)

// version is set by the linker for a release.
var version = ""

// streams are what a command reads from and writes to.
type streams struct {
	in       io.Reader
	out, err io.Writer
	tty      *os.File // stdout, where it is a terminal to draw on; or nil
	inTTY    bool
	outTTY   bool
	errTTY   bool
	env      func(string) string
	cwd      string
	managed  string // the settings file of who runs the machine
	keyring  keyStore
	bundled  ownPlugins // the plugins in this program
}

// keyStore is the operating system's keyring.
type keyStore interface {
	config.Keyring
	Set(ctx context.Context, name, value string) error
	// Delete removes an entry; the error is an fs.ErrNotExist if there is none.
	Delete(ctx context.Context, name string) error
	// Running reports, without asking it, whether there may be a keyring.
	Running() bool
	// Available reports whether entries can be read and kept.
	Available(ctx context.Context) bool
}

// Main runs the command line of this process and returns its exit code.
func Main() int { return mainWith(managedSettings(os.Getenv), bundledPlugins) }

// mainWith is Main with another settings file of who runs the machine, and of a
// program that serves other plugins.
func mainWith(managed string, plugins ownPlugins) int {
	cwd, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "agent: the working directory cannot be read: %v\n", err)
		return exitError
	}
	return run(context.Background(), os.Args[1:], &streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTTY: term.IsTerminal(int(os.Stdin.Fd())), outTTY: term.IsTerminal(int(os.Stdout.Fd())), errTTY: term.IsTerminal(int(os.Stderr.Fd())),
		env: os.Getenv, cwd: cwd, managed: managed, tty: os.Stdout, keyring: keyring.New(os.Getenv), bundled: plugins,
	})
}

// run runs one command line.
func run(ctx context.Context, args []string, s *streams) int {
	out := &checkedWriter{Writer: s.out}
	s.out = out
	root := newRoot(s)
	root.SetArgs(args)
	if completes(args) {
		addCompletions(root, s)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		err = fmt.Errorf("the output cannot be written: %w", out.err)
	}
	var status *statusError
	if err != nil && !errors.As(err, &status) {
		fmt.Fprintf(s.err, "agent: %v\n", err)
		if usage := (*usageError)(nil); errors.As(err, &usage) {
			fmt.Fprintf(s.err, "Run '%s --help' for usage.\n", cmd.CommandPath())
		}
		if advised := (*advisedError)(nil); errors.As(err, &advised) {
			fmt.Fprintf(s.err, "\n%s", advised.advice)
		}
	}
	return exitCode(err)
}

// checkedWriter remembers the first failure, so that no command has to look at
// each of its writes.
type checkedWriter struct {
	io.Writer
	err error
}

// Write implements [io.Writer].
func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// newRoot builds the command tree.
func newRoot(s *streams) *cobra.Command {
	o := &execOptions{streams: s, shared: &shared{}}
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
			meant := len(args) == 1 && cmd.ArgsLenAtDash() < 0 && nearCommand(cmd, args[0]) != ""
			switch {
			case o.print:
				return o.run(cmd.Context(), args)
			case s.inTTY && s.outTTY && !meant:
				return o.interactive(cmd.Context(), args)
			case len(args) == 0:
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0], fmt.Sprintf("to run it as a prompt: agent exec %q", args[0]))
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(flagError)
	o.register(root.Flags())
	root.Flags().BoolVarP(&o.print, "print", "p", false, "run the prompt once and print the answer; the same as exec")
	root.AddCommand(
		newExec(s),
		newDemo(s),
		newTools(s),
		newMCP(s),
		newSkills(s),
		newPlugins(s),
		newInternalPlugin(s),
		newPermissions(s),
		newConfig(s),
		newProviders(s),
		newModels(s),
		newDoctor(s),
		newSessions(s),
		newResume(s),
		newTrust(s),
		newCompletion(s),
		newVersion(s),
	)
	return root
}

// usageArgs makes a mistake in the number of arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{fmt.Errorf("%w; usage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0], "")
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// buildVersion is the version of this program.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
