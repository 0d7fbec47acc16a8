package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/worktree"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// isolation runs a task in a worktree, or several times in several.
type isolation struct {
	worktree string // its name; anyName for any
	attempts int
	choose   string
	best     bool
	apply    bool
}

// anyName is the value of --worktree without one.
const anyName = "*"

// maxAttempts limits the sessions that run at once.
const maxAttempts = 16

func (i *isolation) register(f *pflag.FlagSet) {
	f.StringVar(&i.worktree, "worktree", "", "work in a copy of the workspace, new or with this `NAME`; see agent worktrees")
	f.Lookup("worktree").NoOptDefVal = anyName
	f.IntVar(&i.attempts, "attempts", 0, "make `N` attempts at once, each in its own worktree, and keep one: see --choose")
	f.StringVar(&i.choose, "choose", "", "keep the first attempt after which `COMMAND` succeeds in its worktree; the others are dropped")
	f.BoolVar(&i.best, "best", false, "with --choose: wait for all attempts, and keep the one with the lowest exit code, then the lowest cost")
	f.BoolVar(&i.apply, "apply", false, "apply the changes of the worktree to the workspace in the end")
}

// on reports whether there are worktrees at all.
func (i *isolation) on() bool { return i.worktree != "" || i.attempts > 0 }

// check finds flags that contradict each other.
func (i *isolation) check(o *Options) error {
	switch {
	case i.attempts < 0 || i.attempts > maxAttempts:
		return cmdutil.Usagef("--attempts %d: use a number from 1 to %d", i.attempts, maxAttempts)
	case (i.attempts > 0) != (i.choose != ""):
		return cmdutil.Usagef("--attempts and --choose belong together: --attempts 3 --choose 'go test ./...'")
	case i.best && i.attempts == 0:
		return cmdutil.Usagef("--best needs --attempts and --choose")
	case i.apply && !i.on():
		return cmdutil.Usagef("--apply needs --worktree or --attempts")
	case i.on() && (o.Latest || o.Resume != ""):
		return cmdutil.Usagef("a session cannot be moved to a worktree: leave out --continue and --resume; a session of a worktree resumes there")
	case i.attempts > 0 && o.onAsk == onAskPark:
		return cmdutil.Usagef("attempts cannot be parked: use --worktree, or leave out --on-ask park")
	case i.attempts > 0 && o.Recording.On():
		return cmdutil.Usagef("attempts cannot be recorded or replayed: use --worktree")
	}
	return nil
}

// run runs the task where the flags say.
func (i *isolation) run(ctx context.Context, t *Task) (core.Outcome, error) {
	if !i.on() {
		return t.Run(ctx)
	}
	if !t.place.Local() {
		return core.Outcome{}, t.fail(cmdutil.Usagef("worktrees are made only on this machine: leave out --env"))
	}
	if i.attempts > 0 {
		return i.runAttempts(ctx, t)
	}
	w, err := i.open(ctx, t)
	if err != nil {
		return core.Outcome{}, t.fail(err)
	}
	fmt.Fprintf(t.Err, "agent: worktree %s: %s\n", w.Info().Name, display.Printable(w.Info().Dir))
	out, err := t.in(w).Run(ctx)
	return out, errors.Join(err, i.finish(context.WithoutCancel(ctx), t, w, err == nil), w.Close())
}

// options are those of a task's worktree.
func (t *Task) options(name string) worktree.Options {
	if name == anyName {
		name = ""
	}
	return worktree.Options{
		Root: t.Agent.Dir, Home: t.home, Name: name, Keep: true,
		Excludes: []string{filepath.Join(t.userHome, ".config", "git", "ignore")},
	}
}

// open makes the worktree, or opens the one of that name.
func (i *isolation) open(ctx context.Context, t *Task) (*worktree.Worktree, error) {
	opts := t.options(i.worktree)
	w, err := worktree.Create(ctx, opts)
	if errors.Is(err, worktree.ErrExists) {
		w, err = worktree.Open(opts)
	}
	if err != nil {
		return nil, fmt.Errorf("--worktree: %w", err)
	}
	return w, nil
}

// in returns the task for a worktree. Settings, rules and definitions are those of
// the workspace; what they say about its paths applies to the worktree.
func (t *Task) in(w *worktree.Worktree) *Task {
	from, to := t.Agent.Dir, w.Info().Dir
	moved := *t
	moved.Agent.Dir = to
	moved.Agent.Permissions.Sets = slices.Clone(t.Agent.Permissions.Sets)
	for i := range moved.Agent.Permissions.Sets {
		if set := &moved.Agent.Permissions.Sets[i]; set.Base == from {
			set.Base = to
		}
	}
	if t.Agent.Sandbox != nil {
		box := *t.Agent.Sandbox
		box.Writable = relocate(box.Writable, from, to)
		box.Masked = append(slices.Clone(box.Masked), relocate(box.Masked, from, to)...)
		moved.Agent.Sandbox = &box
	}
	return &moved
}

// relocate replaces a directory in paths.
func relocate(paths []string, from, to string) []string {
	var all []string
	for _, p := range paths {
		if rel, err := filepath.Rel(from, p); err == nil && filepath.IsLocal(rel) {
			p = filepath.Join(to, rel)
		}
		all = append(all, p)
	}
	return all
}

// finish applies what changed, if that is wanted, and says what is left to do. A
// worktree without changes and without a name of the user's is removed.
func (i *isolation) finish(ctx context.Context, t *Task, w *worktree.Worktree, done bool) error {
	name := w.Info().Name
	state, err := w.State(ctx)
	if err != nil {
		return fmt.Errorf("worktree %s: %w", name, err)
	}
	for _, l := range state.Left {
		fmt.Fprintf(t.Err, "agent: not part of the changes: %s: %s\n", display.Printable(l.Path), l.Reason)
	}
	unnamed := i.worktree == "" || i.worktree == anyName
	if len(state.Files)+len(state.Left) == 0 {
		fmt.Fprintf(t.Err, "agent: nothing changed in worktree %s\n", name)
		if unnamed {
			return w.Remove()
		}
		return nil
	}
	changed := display.Plural(len(state.Files), "file")
	if !i.apply || !done {
		fmt.Fprintf(t.Err, "agent: %s changed in worktree %s: agent worktrees diff|apply|branch|remove %[2]s\n", changed, name)
		return nil
	}
	conflicts, err := w.Apply(ctx, state.ID, false)
	if err != nil {
		return fmt.Errorf("worktree %s: its changes were not applied: %w", name, err)
	}
	for _, c := range conflicts {
		fmt.Fprintf(t.Err, "agent: kept %s: %s\n", display.Printable(c.Path), c.Reason)
	}
	if len(conflicts) > 0 {
		return fmt.Errorf("not all changes were applied; the rest is in worktree %s", name)
	}
	fmt.Fprintf(t.Err, "agent: %s changed in the workspace\n", changed)
	if unnamed && len(state.Left) == 0 {
		return w.Remove()
	}
	return nil
}

// check runs a command in a worktree as the agent's commands run, in the sandbox,
// and returns its exit code and the end of its output.
func (t *Task) check(ctx context.Context, command string) (code int, output string, err error) {
	opts := t.Agent
	opts.Plugins, opts.MCP, opts.NoBuiltins = nil, agent.MCPOptions{}, true
	a, err := agent.Open(ctx, opts)
	if err != nil {
		return 0, "", err
	}
	defer a.Close()
	dir := a.Env().Info().Dir
	grants := []core.Grant{
		{Access: core.Access{Scope: core.ScopeShell, Resource: command}},
		{Access: core.Access{Scope: core.ScopeRead, Resource: dir, Recursive: true}},
		{Access: core.Access{Scope: core.ScopeWrite, Resource: dir, Recursive: true}},
	}
	out, exit, err := core.Exec(ctx, core.Restrict(a.Env(), grants, nil), core.Command{Script: command})
	if err != nil {
		return 0, "", err
	}
	if exit.Code < 0 {
		return 128, string(out), nil // a signal ended it
	}
	return exit.Code, string(out), nil
}

// tail returns the last line of an output.
func tail(output string) string {
	output = strings.TrimSpace(output)
	return display.OneLine(output[strings.LastIndexByte(output, '\n')+1:], 100)
}

// better orders attempts: by exit code, then by cost, then by number.
func better(a, b *attempt) int {
	return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.out.Cost, b.out.Cost), cmp.Compare(a.number, b.number))
}
