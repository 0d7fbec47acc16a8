package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// write applies the planned changes. After a failure it undoes what it did.
// Large files, which are not kept in memory, are moved first and deleted last:
// their deletion cannot be undone.
func (w *patcher) write(ctx context.Context) error {
	undo := undoing{}
	for _, step := range []func(context.Context, *undoing) error{w.moveLarge, w.removeOld, w.writeNew, w.removeLarge} {
		if err := step(ctx, &undo); err != nil {
			return undo.run(ctx, err)
		}
	}
	return nil
}

// moveLarge moves large files by renaming them.
func (w *patcher) moveLarge(ctx context.Context, undo *undoing) error {
	for _, c := range w.changes {
		if c.isNew || c.gone || !c.moved() || !w.originals[c.key].large {
			continue
		}
		w.failed = c.to
		to := w.originals[c.toKey]
		if to.large {
			return fmt.Errorf("it replaces a file of more than %s: delete that in a separate patch", byteSize(maxEditSize))
		}
		if !to.exists { // creates the parents
			if err := w.put(ctx, c.to, nil, w.originals[c.key].mode); err != nil {
				return err
			}
			undo.add(w.restore(c.to, c.toKey))
		}
		if err := w.env.Files().Rename(ctx, c.path, c.to); err != nil {
			return err
		}
		if to.exists {
			undo.add(w.restore(c.to, c.toKey))
		}
		undo.add(func(ctx context.Context) error {
			if err := w.env.Files().Rename(ctx, c.to, c.path); err != nil || to.exists {
				return err
			}
			return w.put(ctx, c.to, nil, 0) // the next step removes it
		})
	}
	return nil
}

// removeOld removes the files that are deleted or moved away, before others can
// take their place as a directory.
func (w *patcher) removeOld(ctx context.Context, undo *undoing) error {
	for _, c := range w.changes {
		if c.isNew || w.originals[c.key].large || !c.gone && !c.moved() || w.at(c.key) != nil {
			continue
		}
		w.failed = c.path
		if err := w.env.Files().Remove(ctx, c.path); err != nil {
			return err
		}
		undo.add(w.restore(c.path, c.key))
	}
	return nil
}

func (w *patcher) writeNew(ctx context.Context, undo *undoing) error {
	for _, c := range w.targets() {
		old := w.originals[c.toKey]
		if old.exists && !c.moved() && !c.isNew && bytes.Equal(old.data, c.after) {
			continue
		}
		if old.large {
			w.failed = c.to
			if moved := w.from(c.toKey); moved == nil || moved.gone {
				return fmt.Errorf("it replaces a file of more than %s: delete that in a separate patch", byteSize(maxEditSize))
			}
		}
		mode := w.originals[c.key].mode // also of a file that is replaced
		w.failed = c.to
		if err := w.put(ctx, c.to, c.after, mode); err != nil {
			return err
		}
		if !old.large {
			undo.add(w.restore(c.to, c.toKey))
		}
	}
	return nil
}

func (w *patcher) removeLarge(ctx context.Context, _ *undoing) error {
	removed := ""
	for _, c := range w.changes {
		if !c.gone || !w.originals[c.key].large || w.at(c.key) != nil {
			continue
		}
		w.failed = c.path
		if err := w.env.Files().Remove(ctx, c.path); err != nil {
			if removed != "" {
				err = fmt.Errorf("%w; %s was already deleted", err, removed)
			}
			return err
		}
		removed = c.path
	}
	return nil
}

func (w *patcher) put(ctx context.Context, at string, data []byte, mode fs.FileMode) error {
	return w.env.Files().Write(ctx, at, bytes.NewReader(data), mode)
}

// restore returns a step that restores what was at a path before the patch.
func (w *patcher) restore(at, key string) func(context.Context) error {
	old := w.originals[key]
	return func(ctx context.Context) error {
		if old.exists {
			return w.put(ctx, at, old.data, old.mode)
		}
		return w.env.Files().Remove(ctx, at)
	}
}

// undoing is the steps that undo what was done.
type undoing struct{ steps []func(context.Context) error }

func (u *undoing) add(step func(context.Context) error) { u.steps = append(u.steps, step) }

// run runs the steps in reverse, even if the call was cancelled.
func (u *undoing) run(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx)
	var failed []error
	for i := len(u.steps) - 1; i >= 0; i-- {
		if err := u.steps[i](ctx); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w; not all changes could be undone: %w", cause, errors.Join(failed...))
	}
	return fmt.Errorf("%w; all other files are unchanged", cause)
}
