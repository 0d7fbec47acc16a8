package env

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Skipped is a change that was not applied.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Apply makes the changes in the directory, except those for which refuse returns
// a reason. What changed there meanwhile stays as it is. Each file changes at once;
// a symbolic link is never followed out of the directory.
func (d *Tried) Apply(refuse func(c sandbox.Change) string) (skipped []Skipped, err error) {
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	skip := map[int]error{}
	for i, c := range d.Changes {
		now, _ := stampOf(filepath.Join(d.Dir, c.Path)) // zero if it is missing
		switch reason := refuse(c); {
		case reason != "":
			skip[i] = errors.New(reason)
		case now != d.stamps[c.Path]:
			skip[i] = errors.New("it was changed meanwhile")
		}
	}
	for i, c := range slices.Backward(d.Changes) {
		if c.Kind != sandbox.Deleted || skip[i] != nil {
			continue
		}
		if err := root.Remove(c.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			skip[i] = errors.Unwrap(err)
		}
	}
	for i, c := range d.Changes {
		if skip[i] != nil || c.Kind == sandbox.Deleted {
			continue
		}
		if err := d.place(root, c); err != nil {
			skip[i] = err
		}
	}
	for i, c := range d.Changes {
		if skip[i] != nil {
			skipped = append(skipped, Skipped{c.Path, skip[i].Error()})
		}
	}
	return skipped, nil
}

// place makes a change that is no deletion.
func (d *Tried) place(root *os.Root, c sandbox.Change) error {
	switch {
	case c.Kind == sandbox.Moded:
		return root.Chmod(c.Path, c.Mode.Perm())
	case c.Mode.IsDir():
		if err := root.Mkdir(c.Path, c.Mode.Perm()); err != nil {
			return err
		}
		return root.Chmod(c.Path, c.Mode.Perm())
	case c.Mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(filepath.Join(d.Upper, c.Path))
		if err != nil {
			return err
		}
		return d.rename(root, c, func(temp string) error { return root.Symlink(target, temp) })
	case !c.Mode.IsRegular():
		return errors.New("it is not a regular file")
	}
	return d.rename(root, c, func(temp string) error {
		in, err := os.Open(filepath.Join(d.Upper, c.Path))
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Chmod(c.Mode.Perm()), out.Close())
	})
}

// rename puts what make creates in the place of a path.
func (d *Tried) rename(root *os.Root, c sandbox.Change, make func(temp string) error) error {
	temp := filepath.Join(filepath.Dir(c.Path), fmt.Sprintf(".agent-try-%d", os.Getpid()))
	if err := make(temp); err != nil {
		return errors.Join(err, ignoreMissing(root.Remove(temp)))
	}
	if err := root.Rename(temp, c.Path); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
