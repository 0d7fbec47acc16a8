// Package k8s is an environment in a container of a running Kubernetes pod,
// using "kubectl exec".
//
// [Env.Close] ends the commands, but not the pod. The requirements for its image
// are those of core/env/posix.
package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env/posix"
	"github.com/seed-009c0928/agent/core/proc"
)

// Options configure an [Env]: Pod must be set.
type Options struct {
	Pod        string // name, or "deployment/NAME" etc.
	Container  string // in the pod; empty = the default container
	Namespace  string // empty = that of the context
	Context    string // of the kubeconfig; empty = the current one
	Kubeconfig string // a file; empty = kubectl's default

	Dir     string   // working directory in the container; empty = its default
	AddDirs []string // further directories of the workspace, relative to Dir
	Home    string   // meaning of ~; empty = HOME in the container

	Command string // the tool; empty = "kubectl"
	// Environ is the environment of the tool, nil = that of this process;
	// secrets are left out. The pod does not get it.
	Environ []string
	// Inherit selects how much of the container's environment commands get;
	// PassEnv names variables that are always passed on.
	Inherit proc.Inherit
	PassEnv []string
	// Supervisor starts the tool; its owner closes it. With nil, the
	// environment creates one.
	Supervisor *proc.Supervisor
	// Logger logs protections that could not be set up; nil discards.
	Logger *slog.Logger
}

// Env is an environment in a pod. It is safe for concurrent use.
type Env struct {
	*posix.Env
	cli      *posix.CLI
	close    sync.Once
	closeErr error
}

var (
	_ core.Environment = (*Env)(nil)
	_ core.ExactFiler  = (*Env)(nil)
)

// New returns the environment in the pod, which must be running.
func New(ctx context.Context, opts Options) (*Env, error) {
	if opts.Pod == "" || strings.HasPrefix(opts.Pod, "-") {
		return nil, fmt.Errorf("k8s: invalid pod name %q", opts.Pod)
	}
	if opts.Command == "" {
		opts.Command = "kubectl"
	}
	cli := posix.NewCLI(posix.CLIOptions{
		Command: opts.Command, Environ: opts.Environ, Supervisor: opts.Supervisor, Logger: opts.Logger,
	})
	inside, err := posix.New(ctx, cli.Runner(execArgs(opts), "--tty"), posix.Options{
		Dir: opts.Dir, AddDirs: opts.AddDirs, Home: opts.Home, Inherit: opts.Inherit, PassEnv: opts.PassEnv,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pod %s: %w", opts.Pod, err), cli.Close())
	}
	return &Env{Env: inside, cli: cli}, nil
}

// execArgs returns the command line up to the program to run.
func execArgs(opts Options) []string {
	args := []string{"exec", "--stdin", "--quiet"}
	for _, flag := range []struct{ name, value string }{
		{"kubeconfig", opts.Kubeconfig},
		{"context", opts.Context},
		{"namespace", opts.Namespace},
		{"container", opts.Container},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	return append(args, opts.Pod, "--")
}

// Close implements [core.Environment].
func (e *Env) Close() error {
	e.close.Do(func() { e.closeErr = errors.Join(e.Env.Close(), e.cli.Close()) })
	return e.closeErr
}
