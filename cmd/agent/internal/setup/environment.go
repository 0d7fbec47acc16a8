package setup

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env/docker"
	"github.com/seed-009c0928/agent/core/env/k8s"
	"github.com/seed-009c0928/agent/core/env/ssh"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Environment is where tools work, as set by --env.
type Environment struct{ kind, name string }

// Local reports whether it is this machine.
func (w Environment) Local() bool { return w.kind == "local" }

// OpenAgent opens an agent that works there.
func (w Environment) OpenAgent(ctx context.Context, opts agent.Options) (*agent.Agent, error) {
	var err error
	if opts.Env, err = w.open(ctx, opts); err != nil {
		return nil, err
	}
	return agent.Open(ctx, opts) // closes the environment
}

// parseEnvironment parses the value of --env.
func parseEnvironment(text string) (Environment, error) {
	kind, name, named := strings.Cut(text, ":")
	w := Environment{kind, strings.TrimSpace(name)}
	switch {
	case kind == "local" && !named || text == "":
		return Environment{kind: "local"}, nil
	case w.name != "" && (kind == "docker" || kind == "k8s" || kind == "ssh"):
		return w, nil
	}
	return w, cmdutil.Usagef("--env %q: use local, docker:IMAGE, docker:@CONTAINER, ssh:[USER@]HOST[:PORT][:/DIRECTORY] or k8s:[NAMESPACE/]POD[:DIRECTORY]", text)
}

// open returns the environment, nil for this machine. The caller closes it.
func (w Environment) open(ctx context.Context, o agent.Options) (core.Environment, error) {
	dir, log, pass := o.Dir, o.Logger, o.PassEnv
	switch w.kind {
	case "docker":
		opts := docker.Options{Image: w.name, Workspace: dir, Logger: log, PassEnv: pass}
		if uid := os.Getuid(); uid > 0 { // else new files belong to root; -1 is Windows
			opts.User = fmt.Sprintf("%d:%d", uid, os.Getgid())
		}
		if container, ok := strings.CutPrefix(w.name, "@"); ok {
			opts = docker.Options{Container: container, Logger: log, PassEnv: pass}
		}
		e, err := docker.New(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		return e, nil
	case "ssh":
		host, dir, ok := strings.Cut(w.name, ":/")
		if ok {
			dir = "/" + dir
		}
		e, err := ssh.New(ctx, ssh.Options{Host: host, Dir: dir, PassEnv: pass})
		if err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		return e, nil
	case "k8s":
		pod, dir, _ := strings.Cut(w.name, ":")
		namespace, name, ok := strings.Cut(pod, "/")
		if !ok {
			namespace, name = "", pod
		}
		e, err := k8s.New(ctx, k8s.Options{Pod: name, Namespace: namespace, Dir: dir, Logger: log, PassEnv: pass})
		if err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		return e, nil
	}
	return nil, nil
}
