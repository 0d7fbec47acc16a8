package cmdutil

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/version"
	"github.com/seed-009c0928/agent/sdk"
)

// IO is the process around a command: its streams, environment, working
// directory and keyring. Tests replace each.
type IO struct {
	In              io.Reader
	Out, Err        io.Writer
	Terminal        *os.File // stdout, if it is a terminal to draw on; or nil
	InTTY           bool
	OutTTY          bool
	ErrTTY          bool
	Env             func(string) string
	Cwd             string
	ManagedSettings string // path of the managed settings file; "" = none
	Keyring         Keyring
	Bundled         Bundled
}

// Bundled has the plugins that are built into the binary, by their names. To make
// one takes a while: call its function when it is needed.
type Bundled map[string]func() sdk.Plugin

// All makes the plugins with other names than these.
func (b Bundled) All(except ...string) []sdk.Plugin {
	var list []sdk.Plugin
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if !slices.Contains(except, name) {
			list = append(list, b[name]())
		}
	}
	return list
}

// Keyring is the operating system's keyring.
type Keyring interface {
	config.Keyring
	Set(ctx context.Context, name, value string) error
	// Delete removes an entry; the error is an fs.ErrNotExist if there is none.
	Delete(ctx context.Context, name string) error
	// Running reports whether there may be a keyring, without calling it.
	Running() bool
	// Available reports whether entries can be read and written.
	Available(ctx context.Context) bool
}

// CheckedWriter keeps its first error and writes nothing more, so that commands
// need not check each write.
type CheckedWriter struct {
	io.Writer
	Err error
}

// Write implements [io.Writer].
func (w *CheckedWriter) Write(p []byte) (int, error) {
	if w.Err != nil {
		return 0, w.Err
	}
	n, err := w.Writer.Write(p)
	w.Err = err
	return n, err
}

// Version is the version of this program.
func Version() string { return version.Number() }

// AgentHome returns the directory of the agent's own files. It reads no
// settings, so it works if they are invalid.
func (s *IO) AgentHome() (string, error) {
	home := config.Home(config.LoadOptions{Env: s.Env, Home: UserHome(), Cwd: s.Cwd})
	if home == "" {
		return "", &config.Error{Err: errors.New("no home directory: set HOME or AGENT_HOME")}
	}
	return home, nil
}

// UserHome returns the user's home directory, or "".
func UserHome() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// WorkDir returns the working directory of a session started in dir, with links
// resolved; "" is the current directory. It need not exist.
func (s *IO) WorkDir(dir string) string {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Cwd, dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
}
