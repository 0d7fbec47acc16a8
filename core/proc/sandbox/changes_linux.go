package sandbox

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReadChanges lists what a process changed in dir, from the directory that
// [TriedIn] names; sorted, parents before what is below. A path whose type changed
// is listed twice. Times alone are no change.
func ReadChanges(upper, dir string) ([]Change, error) {
	r := &changeReader{upper: upper, dir: dir, fresh: map[string]bool{}}
	err := filepath.WalkDir(upper, r.visit)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.SortStableFunc(r.all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return r.all, err
}

type changeReader struct {
	upper, dir string
	fresh      map[string]bool // directories that hide what is below them
	all        []Change
}

func (r *changeReader) add(rel string, kind ChangeKind, info fs.FileInfo) {
	r.all = append(r.all, Change{Path: rel, Kind: kind, Mode: info.Mode()})
}

func (r *changeReader) visit(at string, _ fs.DirEntry, err error) error {
	if err != nil || at == r.upper {
		return err
	}
	rel, err := filepath.Rel(r.upper, at)
	if err != nil {
		return err
	}
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	below := filepath.Join(r.dir, rel)
	old, oldErr := os.Lstat(below)
	if oldErr != nil && !errors.Is(oldErr, fs.ErrNotExist) && !errors.Is(oldErr, syscall.ENOTDIR) {
		return oldErr
	}
	switch {
	case whiteout(info):
		if oldErr == nil {
			return r.gone(rel, old)
		}
		return nil // made and removed again
	case oldErr != nil:
		r.add(rel, Created, info)
		return nil
	case info.Mode().Type() != old.Mode().Type():
		if err := r.gone(rel, old); err != nil {
			return err
		}
		r.add(rel, Created, info)
		return nil
	case info.IsDir() && (opaque(at) || r.fresh[filepath.Dir(rel)]):
		r.fresh[rel] = true
		if err := r.replaced(rel); err != nil {
			return err
		}
	}
	same := info.IsDir()
	if !same {
		if same, err = sameContent(at, info, below, old); err != nil {
			return err
		}
	}
	switch {
	case !same:
		c := Change{Path: rel, Kind: Modified, Mode: info.Mode()}
		if st, ok := old.Sys().(*syscall.Stat_t); ok {
			c.Links = st.Nlink > 1
		}
		r.all = append(r.all, c)
	case info.Mode() != old.Mode():
		r.add(rel, Moded, info)
	}
	return nil
}

// gone lists the deletion of a path with everything below.
func (r *changeReader) gone(rel string, old fs.FileInfo) error {
	r.add(rel, Deleted, old)
	if !old.IsDir() {
		return nil
	}
	return filepath.WalkDir(filepath.Join(r.dir, rel), func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.dir, at)
		if err != nil || name == rel {
			return err
		}
		info, err := d.Info()
		if err == nil {
			r.add(name, Deleted, info)
		}
		return err
	})
}

// replaced lists what is no longer in a directory that was removed and made again.
func (r *changeReader) replaced(rel string) error {
	entries, err := os.ReadDir(filepath.Join(r.dir, rel))
	for _, e := range entries {
		name := filepath.Join(rel, e.Name())
		if _, missing := os.Lstat(filepath.Join(r.upper, name)); missing == nil {
			continue
		}
		info, infoErr := e.Info()
		if infoErr != nil {
			return infoErr
		}
		err = errors.Join(err, r.gone(name, info))
	}
	return err
}

// whiteout reports whether an entry of a layer stands for a deleted path.
func whiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

// opaque reports whether a directory of a layer hides what is below it.
func opaque(path string) bool {
	var b [8]byte
	n, err := unix.Lgetxattr(path, "user.overlay.opaque", b[:])
	return err == nil && n == 1 && b[0] == 'y'
}

// sameContent compares files of the same type.
func sameContent(a string, aInfo fs.FileInfo, b string, bInfo fs.FileInfo) (bool, error) {
	if aInfo.Mode()&fs.ModeSymlink != 0 {
		x, err := os.Readlink(a)
		y, err2 := os.Readlink(b)
		return x == y, errors.Join(err, err2)
	}
	if !aInfo.Mode().IsRegular() || aInfo.Size() != bInfo.Size() {
		return !aInfo.Mode().IsRegular(), nil
	}
	x, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	left, right := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(x, left)
		m, err2 := io.ReadFull(y, right)
		switch {
		case n != m || !bytes.Equal(left[:n], right[:m]):
			return false, nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return true, nil
		case err != nil || err2 != nil:
			return false, errors.Join(err, err2)
		}
	}
}

// MountsBelow lists the mounts below a directory, which no layer on it covers.
func MountsBelow(dir string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 {
			if at := unescape.Replace(f[4]); at != dir && Below(dir, at) {
				found = append(found, at)
			}
		}
	}
	return found, nil
}
