package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Try starts the plugin in a folder to test it, confined to its manifest, checks its
// description as adding it would, and calls use. The process ends with that. What it
// prints and logs is also written to log. Its code runs without approval.
func (h *Host) Try(ctx context.Context, dir string, log io.Writer, use func(toolproto.PluginClient) error) (err error) {
	spec, err := ReadSpec(dir)
	if err != nil {
		return err
	}
	p := h.newPlugin(found{name: spec.Name, scope: Linked, origin: &staged{dir: dir}})
	p.log.also, p.log.secrets = log, h.secrets(spec.Manifest)
	defer func() { err = errors.Join(err, p.Close()) }()
	i, err := p.acquire(ctx)
	if err != nil {
		return p.wrap(err)
	}
	defer p.release(i, true)
	return use(i.client)
}

// Built returns the program that Build builds in a plugin's folder; "" if there is
// nothing to build.
func Built(dir string) (string, error) { return goProgram(dir, dir) }

// goProgram returns the program of a plugin's folder with the files in root, if the
// folder is a Go module with one.
func goProgram(dir, root string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", nil
	}
	spec, err := ReadSpec(dir)
	if errors.Is(err, errNoSpec) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return spec.program(root)
}

// RunBuild runs a command with the shell in a plugin's folder, to build it. It is not
// sandboxed: it is the command of the plugin's author.
func (s *Store) RunBuild(ctx context.Context, dir, command string, out io.Writer) error {
	shell := []string{"sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd.exe", "/d", "/s", "/c"}
	}
	p, err := s.supervisor.Start(ctx, proc.Spec{
		Path: shell[0], Args: append(shell[1:], command), Dir: dir, Stdout: out, Stderr: out,
		Env: proc.FilterEnv(os.Environ(), proc.InheritAll, downloadNames...),
	})
	if err != nil {
		return fmt.Errorf("cannot start the build: %w", err)
	}
	exit, err := p.Wait()
	if err == nil && (exit.Code != 0 || exit.Signal != "") {
		err = fmt.Errorf("the build %q failed: %s", command, describeExit(exit))
	}
	return err
}

// Build builds the plugin in a folder in place, if it is a Go module. Running processes
// of it are not disturbed.
func (s *Store) Build(ctx context.Context, dir string) error {
	program, err := Built(dir)
	if err != nil || program == "" {
		return err
	}
	next := filepath.Join(filepath.Dir(program), "."+filepath.Base(program))
	defer os.Remove(next) // fails if it was renamed
	if err := s.build(ctx, dir, next, "."); err != nil {
		return err
	}
	return os.Rename(next, program)
}
