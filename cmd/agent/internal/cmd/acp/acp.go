package acp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
)

// setupCommand is the name of the command below agent acp that sets up a provider.
const setupCommand = "setup"

// tailCommand is the name of the one that shows output.
const tailCommand = "tail"

type options struct {
	*cmdutil.IO
	flags setup.Flags
}

// NewCmd returns agent acp. The command that sets up a provider is for editors, which
// add arguments to those of the agent.
func NewCmd(s *cmdutil.IO, setupCmd *cobra.Command) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Run the agent for an editor",
		Long: "Run sessions for an editor that speaks the Agent Client Protocol, such as Zed, over stdin and stdout. The\n" +
			"editor starts this command, and chooses the directories, the permission mode and the model; flags set the\n" +
			"defaults. How to set up editors: docs/acp.md.",
		Example: "  agent acp --model anthropic/claude-sonnet-4-5",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.Register(cmd.Flags(), setup.SessionFlags&^setup.DirFlag)
	setupCmd.Hidden = true
	cmd.AddCommand(setupCmd, newTailCmd(s))
	return cmd
}

// newTailCmd returns the hidden command that shows the output of a command in a
// terminal of the editor.
func newTailCmd(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:    tailCommand + " SOCKET",
		Short:  "Show the output of a command in a terminal of the editor",
		Hidden: true,
		Args:   cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := acp.Tail(cmd.Context(), args[0], s.Out)
			if err == nil && code != 0 {
				err = &cmdutil.StatusError{Code: code}
			}
			return err
		},
	}
}

// run serves until the editor closes stdin or a signal arrives.
func (o *options) run(ctx context.Context) error {
	set, err := o.load("") // an editor shows what goes wrong at the start
	if err != nil {
		return err
	}
	opts := acp.Options{
		Tail:    tail(),
		Version: cmdutil.Version(), Home: set.Home, SetupArgs: []string{setupCommand}, Open: o.open, Check: o.check, SignOut: o.signOut,
	}
	defer cmdutil.PipeErrors()() // an editor that has gone leaves sessions that can be resumed
	return cmdutil.Interruptible(ctx, func(ctx context.Context) error { return acp.Serve(ctx, o.In, o.Out, opts) })
}

// tail returns the command that shows output; none if this program has no path.
func tail() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, "acp", tailCommand}
}

// load reads the settings of a directory; empty is the working directory.
func (o *options) load(dir string) (*setup.Setup, error) {
	flags := o.flags
	flags.Dir = dir
	return flags.Load(o.IO)
}

// check reports whether the default provider is configured.
func (o *options) check(ctx context.Context) error {
	set, err := o.load("")
	if err == nil {
		_, err = set.Provider(ctx)
	}
	return signIn(err)
}

// signIn marks the error of a provider that is not configured.
func signIn(err error) error {
	var bad *config.Error
	if err != nil && (setup.CodeOf(err) == model.CodeNotConfigured && !errors.As(err, &bad) || model.AsError(err).Code == model.CodeAuthentication) {
		return fmt.Errorf("%w (%w)", acp.ErrSignIn, err)
	}
	return err
}

// signOut removes the key of the default provider from the user's settings and the
// keyring.
func (o *options) signOut(ctx context.Context) error {
	set, err := o.load("")
	if err != nil {
		return err
	}
	kind, err := set.Kind()
	if err != nil {
		return err
	}
	if entry := kind.Values(&set.Settings.Providers).Key.Entry(); entry != "" && o.Keyring != nil {
		if err := o.Keyring.Delete(ctx, entry); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the keyring: %w", err)
		}
	}
	key := set.Setting(kind, "apiKey")
	if _, err := config.UserFile(set.Home).Unset(ctx, key); err != nil {
		return err
	}
	if set, err = o.load(""); err != nil {
		return err
	}
	if from := set.Describe(kind, o.Env).Key; from.From != "" && from.Status != setup.KeyMissing {
		return fmt.Errorf("the key of %s is not in your settings, but comes from %s: remove it there", kind.Name, from.From)
	}
	return nil
}

// sessionOptions returns the options of the session in a directory.
func (o *options) sessionOptions(r host.Open) *run.Options {
	opts := run.NewOptions(o.IO)
	flags := o.flags
	opts.Flags = &flags
	opts.Dir, opts.Resume = r.Dir, r.ID
	flags.AddDirs(r.AddDirs...)
	return opts
}
