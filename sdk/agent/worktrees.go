package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/core/worktree"
)

// home is the directory of the agent's own files.
func (a *Agent) home() string { return cmp.Or(a.opts.Home, a.opts.Permissions.AgentHome) }

// sweep removes the worktrees of agents that were killed.
func (a *Agent) sweep() {
	err := worktree.Sweep(a.home())
	if err == nil && a.opts.Home != "" {
		err = sweepTasks(context.Background(), a.opts.Home)
	}
	if err != nil {
		a.opts.Logger.Debug("worktrees of killed agents are not removed", "error", err)
	}
}

// localEnv returns the environment of this machine in a directory.
func (a *Agent) localEnv(dir string, more []string) (*env.Local, error) {
	return env.NewLocal(env.LocalOptions{
		Dir: dir, AddDirs: more, Environ: a.opts.Environ, PassEnv: a.opts.PassEnv, Supervisor: a.commands, Logger: a.opts.Logger, Sandbox: a.sandbox(),
	})
}

// isolate moves a session's environment to a worktree of its working directory.
func (a *Agent) isolate(ctx context.Context, cfg *core.Config) (_ *isolation, err error) {
	if a.opts.Env != nil {
		return nil, errors.New("isolation: worktrees are made only on this machine; leave isolation out")
	}
	w, err := worktree.Create(ctx, worktree.Options{
		Root: cfg.Env.Info().Dir, Home: a.home(), Excludes: a.excludes(), Secret: a.hidden.In,
	})
	if err != nil {
		return nil, fmt.Errorf("isolation: %w", err)
	}
	in := &isolation{tree: w}
	if in.env, err = a.localEnv(w.Info().Dir, nil); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	cfg.Env, cfg.Watcher = in.env, nil
	move(cfg)
	return in, nil
}

// move makes the policy of a session that of its environment.
func move(cfg *core.Config) {
	if p, ok := cfg.Policy.(interface {
		Within(env core.Environment) core.Policy
	}); ok {
		cfg.Policy = p.Within(cfg.Env)
	}
}

// isolation is the worktree of a subagent.
type isolation struct {
	tree *worktree.Worktree
	env  *env.Local
}

func (i *isolation) close() error {
	if i == nil {
		return nil
	}
	return errors.Join(i.env.Close(), i.tree.Close())
}

// isolatedSession is the session of a subagent that works in a worktree.
type isolatedSession struct {
	*childSession
	in *isolation
}

var _ subagent.Isolated = (*isolatedSession)(nil)

// Changes implements [subagent.Isolated].
func (s *isolatedSession) Changes(ctx context.Context) (subagent.Changes, error) {
	state, err := s.in.tree.State(ctx)
	did := subagent.Changes{State: state.ID, Root: s.in.tree.Info().Root, Files: state.Files}
	for _, l := range state.Left {
		did.Left = append(did.Left, l.Path+": "+l.Reason)
	}
	return did, err
}

// Apply implements [subagent.Isolated].
func (s *isolatedSession) Apply(ctx context.Context, state string) (left []string, err error) {
	conflicts, err := s.in.tree.Apply(ctx, state, false)
	for _, c := range conflicts {
		left = append(left, c.Path+": "+c.Reason)
	}
	return left, err
}

// Branch implements [subagent.Isolated].
func (s *isolatedSession) Branch(ctx context.Context, name, message string) (string, error) {
	branch, _, err := s.in.tree.Branch(ctx, name, message)
	return branch, err
}

// Close implements [subagent.Session].
func (s *isolatedSession) Close() error { return errors.Join(s.childSession.Close(), s.in.close()) }
