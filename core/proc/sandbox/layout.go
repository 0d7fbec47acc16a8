package sandbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// layout is a profile's paths, resolved and sorted: parents before children.
type layout struct {
	writable []string
	readable []string
	pins     []pin
	holds    []string // directories between a writable one and a pin
	masked   []mask
	scratch  []layer
	tried    []layer
	all      bool // everything is writable

	resolved map[string]string // directories without symbolic links
}

// pin is a protected path.
type pin struct {
	path    string
	dir     bool
	root    string // the writable directory that contains it
	missing bool   // it does not exist; if dir is set, an empty directory is created
}

// mask is a hidden path.
type mask struct {
	path string
	dir  bool
}

// layer is a directory of which the process sees a writable copy.
type layer struct {
	path        string
	upper, work string // directories for the changes
}

// newLayout resolves the paths of a profile.
func newLayout(p *Profile, visible ...string) (*layout, error) {
	l := &layout{resolved: map[string]string{}}
	for _, path := range p.Writable {
		if resolved, _, ok := l.existing(path); ok {
			l.writable = append(l.writable, resolved)
		}
	}
	for _, path := range slices.Concat(p.Readable, visible) {
		if resolved, _, ok := l.existing(path); ok && !shows(l.writable, resolved) {
			l.readable = append(l.readable, resolved)
		}
	}
	for _, path := range p.Masked {
		if resolved, info, ok := l.existing(path); ok && resolved != "/" {
			l.masked = append(l.masked, mask{resolved, info.IsDir()})
		}
	}
	l.writable, l.readable = ordered(l.writable), ordered(l.readable)
	l.all = slices.Contains(l.writable, "/")
	l.addScratch(p)
	if err := l.addTried(p); err != nil {
		return nil, err
	}
	slices.SortFunc(l.masked, func(a, b mask) int { return cmp.Compare(a.path, b.path) })
	l.masked = slices.Compact(l.masked)
	for _, path := range p.ReadOnly {
		if err := l.pin(path); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(l.pins, func(a, b pin) int { return cmp.Compare(a.path, b.path) })
	l.pins = slices.CompactFunc(l.pins, func(a, b pin) bool { return a.path == b.path })
	l.holds = ordered(l.holds)
	return l, nil
}

// addScratch adds the directories whose changes go to a copy.
func (l *layout) addScratch(p *Profile) {
	if p.Layers == "" {
		return
	}
	for _, path := range p.Scratch {
		resolved, info, ok := l.existing(path)
		// The characters are special in mount options.
		if !ok || !info.IsDir() || resolved == "/" || strings.ContainsAny(resolved+p.Layers, `,:\`) || l.rootOf(resolved) != "" {
			continue
		}
		base := filepath.Join(p.Layers, strings.ReplaceAll(resolved[1:], "/", "%"))
		l.scratch = append(l.scratch, layer{path: resolved, upper: base + ".upper", work: base + ".work"})
	}
	slices.SortFunc(l.scratch, func(a, b layer) int { return cmp.Compare(a.path, b.path) })
	l.scratch = slices.CompactFunc(l.scratch, func(a, b layer) bool { return Below(a.path, b.path) })
}

// addTried adds the directories whose changes are only tried.
func (l *layout) addTried(p *Profile) error {
	for _, path := range p.Tried {
		resolved, info, ok := l.existing(path)
		switch {
		case !ok || !info.IsDir():
			continue
		case resolved == "/" || strings.ContainsAny(resolved+p.Try, `,:\`):
			return fmt.Errorf("sandbox: no layer is possible on %s because of its name", resolved)
		case l.rootOf(resolved) != "":
			return fmt.Errorf("sandbox: %s is writable, so that nothing can be tried in it", resolved)
		}
		upper := TriedIn(p.Try, resolved)
		l.tried = append(l.tried, layer{path: resolved, upper: upper, work: upper + ".work"})
	}
	slices.SortFunc(l.tried, func(a, b layer) int { return cmp.Compare(a.path, b.path) })
	l.tried = slices.CompactFunc(l.tried, func(a, b layer) bool { return Below(a.path, b.path) })
	return nil
}

// TriedIn returns the directory in try, a Try of a [Profile], with the changes of a
// directory without symbolic links in its path.
func TriedIn(try, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(try, hex.EncodeToString(sum[:8]))
}

// triedRoot returns the directory with a path in it whose changes are only tried.
func (l *layout) triedRoot(path string) string {
	for _, t := range l.tried {
		if Below(t.path, path) {
			return t.path
		}
	}
	return ""
}

// existing is like the function, with the directories resolved so far.
func (l *layout) existing(path string) (resolved string, info fs.FileInfo, ok bool) {
	if path != filepath.Clean(path) {
		return existing(path)
	}
	dir, err := l.resolve(filepath.Dir(path))
	if err != nil {
		return "", nil, false
	}
	resolved = filepath.Join(dir, filepath.Base(path))
	if info, err = os.Lstat(resolved); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return existing(resolved)
	}
	return resolved, info, err == nil
}

// existing resolves the symbolic links of a path that exists.
func existing(path string) (resolved string, info fs.FileInfo, ok bool) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, false
	}
	info, err = os.Stat(resolved)
	return resolved, info, err == nil
}

// resolve resolves the symbolic links of a directory. Many paths are in the same few.
func (l *layout) resolve(dir string) (resolved string, err error) {
	if resolved, ok := l.resolved[dir]; ok {
		return resolved, nil
	}
	if resolved, err = filepath.EvalSymlinks(dir); err == nil {
		l.resolved[dir] = resolved
	}
	return resolved, err
}

// ordered sorts paths so that directories come before their contents.
func ordered(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// pin adds a protected path, if it is in a writable directory and not itself
// writable.
func (l *layout) pin(path string) error {
	wanted := pin{path: filepath.Clean(path), dir: strings.HasSuffix(path, "/")}
	parent, err := l.resolve(filepath.Dir(wanted.path))
	for errors.Is(err, fs.ErrNotExist) { // protect the first missing element instead
		wanted = pin{path: filepath.Dir(wanted.path), dir: true}
		parent, err = l.resolve(filepath.Dir(wanted.path))
	}
	if err != nil {
		return fmt.Errorf("sandbox: protect %s: %w", path, err)
	}
	wanted.path = filepath.Join(parent, filepath.Base(wanted.path))
	if slices.Contains(l.writable, wanted.path) {
		return nil
	}
	root, tried := l.rootOf(parent), false
	if root == "" {
		root, tried = l.triedRoot(parent), true
	}
	if root == "" {
		return nil
	}
	info, err := os.Lstat(wanted.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		wanted.missing, wanted.root = true, root
	case errors.Is(err, syscall.ENOTDIR): // a parent is a file: nothing can be below it
		return nil
	case err != nil:
		return fmt.Errorf("sandbox: protect %s: %w", path, err)
	case isPlaceholder(wanted.path, info):
		wanted.missing, wanted.dir, wanted.root = true, true, root
	case info.Mode()&fs.ModeSymlink != 0:
		return &LinkError{Path: wanted.path}
	default:
		wanted.dir = info.IsDir()
	}
	if tried { // nothing is created for a missing one, and no directory is made writable
		if !wanted.missing {
			l.pins = append(l.pins, wanted)
		}
		return nil
	}
	l.pins = append(l.pins, wanted)
	for dir := parent; dir != root && !slices.Contains(l.writable, dir); dir = filepath.Dir(dir) {
		l.holds = append(l.holds, dir)
	}
	return nil
}

// LinkError is the error for a path that cannot be protected because it is a
// symbolic link in a writable directory.
type LinkError struct{ Path string }

// Error implements error.
func (e *LinkError) Error() string {
	return fmt.Sprintf("sandbox: %s is a symbolic link in a writable directory and cannot be protected: replace it with its target, or run the command without the sandbox", e.Path)
}

// rootOf returns the longest writable directory that contains a path.
func (l *layout) rootOf(path string) (root string) {
	for _, w := range l.writable {
		if Below(w, path) && len(w) > len(root) {
			root = w
		}
	}
	return root
}

// Below reports whether a clean absolute path is dir or below it.
func Below(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// replaced are the directories, besides /proc, that are replaced with the
// process's own, to hide files of other processes and the system.
var replaced = [...]string{"/tmp", "/var/tmp", "/run", "/dev"}

// isReplaced reports whether a path is in a replaced directory.
func isReplaced(path string) bool {
	return slices.ContainsFunc(replaced[:], func(dir string) bool { return path != dir && Below(dir, path) })
}

// sees reports whether a path in a replaced directory is visible nevertheless,
// because it or a parent is mounted there.
func (l *layout) sees(path string) bool { return shows(l.readable, path) || shows(l.writable, path) }

// shows reports whether one of the directories is mounted in a replaced one and
// contains the path.
func shows(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return Below(dir, path) && slices.ContainsFunc(replaced[:], func(r string) bool { return Below(r, dir) })
	})
}
