package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/worktree"
)

// attempt is one of several runs of a task.
type attempt struct {
	number int
	tree   *worktree.Worktree
	task   *Task
	stdout *held
	out    core.Outcome
	code   int // of the command that chooses
	err    error
}

// runAttempts runs the task several times at once and keeps one attempt.
func (i *isolation) runAttempts(ctx context.Context, t *Task) (out core.Outcome, err error) {
	all, err := i.start(ctx, t)
	defer func() {
		for _, a := range all {
			err = errors.Join(err, a.tree.Close()) // removes it, unless it is kept
		}
	}()
	if err != nil {
		return out, t.fail(err)
	}
	i.race(ctx, all)
	var chosen *attempt
	var errs []error
	for _, a := range all {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("attempt %d: %w", a.number, a.err))
		} else if chosen == nil || better(a, chosen) < 0 {
			chosen = a
		}
	}
	if chosen == nil {
		return out, t.fail(errors.Join(errs...))
	}
	for _, a := range all {
		if a != chosen {
			a.stdout.end(t.Format == FormatStream)
		}
	}
	chosen.stdout.end(true)
	if err := chosen.tree.Keep(); err != nil {
		return chosen.out, err
	}
	if chosen.code != 0 {
		fmt.Fprintf(t.Err, "agent: attempt %d is kept, worktree %s\n", chosen.number, chosen.tree.Info().Name)
		return chosen.out, fmt.Errorf("no attempt passed %q: the best one ended with exit code %d", i.choose, chosen.code)
	}
	fmt.Fprintf(t.Err, "agent: attempt %d is kept\n", chosen.number)
	return chosen.out, i.finish(context.WithoutCancel(ctx), t, chosen.tree, true)
}

// start makes the worktrees.
func (i *isolation) start(ctx context.Context, t *Task) (all []*attempt, err error) {
	var mu sync.Mutex // of the streams
	for n := range i.attempts {
		name := i.worktree
		if name != "" && name != anyName {
			name = fmt.Sprintf("%s-%d", name, n+1)
		}
		opts := t.options(name)
		opts.Keep = false
		w, err := worktree.Create(ctx, opts)
		if err != nil {
			return all, fmt.Errorf("--attempts: %w", err)
		}
		a := &attempt{number: n + 1, tree: w, task: t.in(w), stdout: &held{out: t.Out, mu: &mu, live: t.Format == FormatStream}}
		own := *t.IO
		own.InTTY, own.OutTTY, own.ErrTTY = false, false, false
		own.Out, own.Err = a.stdout, &prefixed{out: t.Err, mu: &mu, prefix: fmt.Sprintf("[%d] ", a.number)}
		a.task.IO = &own
		a.task.Agent.Subreaper = false // several agents start commands in this process
		all = append(all, a)
	}
	return all, nil
}

// race runs the attempts, up to the first that passes or to the end of all.
func (i *isolation) race(ctx context.Context, all []*attempt) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, a := range all {
		wg.Go(func() {
			a.run(ctx, i.choose)
			if a.err == nil && a.code == 0 && !i.best {
				cancel(errPassed)
			}
		})
	}
	wg.Wait()
}

// errPassed ends the attempts after another one passed.
var errPassed = errors.New("another attempt passed")

func (a *attempt) run(ctx context.Context, choose string) {
	if a.out, a.err = a.task.Run(ctx); a.err == nil {
		if code := OutcomeCode(a.out, nil); code != cmdutil.ExitDone && code != cmdutil.ExitDenied {
			a.err = fmt.Errorf("it ended early: %s", a.out.Stop)
		}
	}
	var output string
	if a.err == nil {
		a.code, output, a.err = a.task.check(ctx, choose)
	}
	if context.Cause(ctx) == errPassed && a.err != nil {
		a.err = errPassed
	}
	cost := ""
	if a.out.Priced && a.out.Cost > 0 {
		cost = fmt.Sprintf(", $%.4f", a.out.Cost)
	}
	switch {
	case a.err != nil:
		fmt.Fprintf(a.task.Err, "dropped: %v\n", a.err)
	case a.code == 0:
		fmt.Fprintf(a.task.Err, "passed (%s%s)\n", display.Plural(a.out.Rounds, "round"), cost)
	default:
		fmt.Fprintf(a.task.Err, "exit code %d (%s%s): %s\n", a.code, display.Plural(a.out.Rounds, "round"), cost, tail(output))
	}
}

// held keeps the output of an attempt until it is known whether it is wanted. A
// live one passes on whole lines, and keeps only the last.
type held struct {
	out  io.Writer
	mu   *sync.Mutex
	live bool
	kept []byte
}

// Write implements [io.Writer].
func (h *held) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p...)
	if !h.live {
		return len(p), nil
	}
	end := bytes.LastIndexByte(bytes.TrimSuffix(h.kept, []byte("\n")), '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write(h.kept[:end])
	h.kept = slices.Delete(h.kept, 0, end)
	return len(p), err
}

// end passes on what is kept, or drops it.
func (h *held) end(wanted bool) {
	if wanted {
		_, _ = h.out.Write(h.kept) // stdout remembers its errors
	}
	h.kept = nil
}

// prefixed writes lines with a prefix.
type prefixed struct {
	out    io.Writer
	mu     *sync.Mutex
	prefix string
	line   []byte
}

// Write implements [io.Writer].
func (w *prefixed) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, p...)
	for {
		end := bytes.IndexByte(w.line, '\n') + 1
		if end == 0 {
			return len(p), nil
		}
		if _, err := fmt.Fprintf(w.out, "%s%s", w.prefix, w.line[:end]); err != nil {
			return 0, err
		}
		w.line = slices.Delete(w.line, 0, end)
	}
}
