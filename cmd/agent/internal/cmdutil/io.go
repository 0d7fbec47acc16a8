package cmdutil

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/sdk"
)

// OwnPlugins makes the bundled plugins; nil makes none.
type OwnPlugins func() []sdk.Plugin

func (b OwnPlugins) All() []sdk.Plugin {
	if b == nil {
		return nil
	}
	return b()
}

// release is set by the linker for a release.
var release = ""

// IO are what a command reads from and writes to.
type IO struct {
	In              io.Reader
	Out, Err        io.Writer
	Terminal        *os.File // stdout, where it is a terminal to draw on; or nil
	InTTY           bool
	OutTTY          bool
	ErrTTY          bool
	Env             func(string) string
	Cwd             string
	ManagedSettings string // the settings file of who runs the machine
	Keyring         Keyring
	Bundled         OwnPlugins // the plugins in this program
}

// Keyring is the operating system's keyring.
type Keyring interface {
	config.Keyring
	Set(ctx context.Context, name, value string) error
	// Delete removes an entry; the error is an fs.ErrNotExist if there is none.
	Delete(ctx context.Context, name string) error
	// Running reports, without asking it, whether there may be a keyring.
	Running() bool
	// Available reports whether entries can be read and kept.
	Available(ctx context.Context) bool
}

// CheckedWriter remembers the first failure, so that no command has to look at
// each of its writes.
type CheckedWriter struct {
	io.Writer
	Err error
}

// Write implements [io.Writer].
func (w *CheckedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.Err == nil {
		w.Err = err
	}
	return n, err
}

// Args makes a mistake in the number of arguments a usage error.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// Group is a command that only holds others.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UnknownCommand(cmd, args[0], "")
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// Version is the version of this program.
func Version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// AgentHome returns the directory of the agent's own files. No settings are
// read for it, so that sessions can be had while these are broken.
func (s *IO) AgentHome() (string, error) {
	home := config.Home(config.LoadOptions{Env: s.Env, Home: UserHome(), Cwd: s.Cwd})
	if home == "" {
		return "", &config.Error{Err: errors.New("there is no home directory to keep sessions in: set HOME or AGENT_HOME")}
	}
	return home, nil
}

// UserHome returns the person's home directory, or "".
func UserHome() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// Place returns the directory that a session has as its own when it is started
// in dir, "" for the present one. It may be gone.
func (s *IO) Place(dir string) string {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Cwd, dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
}
