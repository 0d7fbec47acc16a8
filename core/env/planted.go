package env

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// names are protected names by their last element, and those with a pattern in it.
type names struct {
	exact map[string][]name
	wild  []name
}

// name is a protected name: its elements, of which the last is split at its first *.
type name struct {
	elements       []string
	prefix, suffix string
}

func newNames(patterns []string) *names {
	n := &names{exact: map[string][]name{}}
	for _, p := range patterns {
		if filepath.IsAbs(p) {
			continue
		}
		elements := strings.Split(strings.TrimSuffix(p, "/"), "/")
		last := elements[len(elements)-1]
		if prefix, suffix, wild := strings.Cut(last, "*"); wild {
			n.wild = append(n.wild, name{elements, prefix, suffix})
		} else {
			n.exact[last] = append(n.exact[last], name{elements: elements})
		}
	}
	return n
}

// match reports whether the end of a path is a protected name.
func (n *names) match(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	for _, e := range n.exact[last] {
		if e.endOf(path) {
			return true
		}
	}
	for _, e := range n.wild {
		if strings.HasPrefix(last, e.prefix) && (strings.HasSuffix(last, e.suffix) || strings.Contains(e.suffix, "*")) && e.endOf(path) {
			return true
		}
	}
	return false
}

// endOf reports whether the last elements of a path are the name.
func (n *name) endOf(path string) bool {
	for _, pattern := range slices.Backward(n.elements) {
		at := strings.LastIndexByte(path, '/')
		if ok, err := filepath.Match(pattern, path[at+1:]); at < 0 || err != nil || !ok {
			return false
		}
		path = path[:at]
	}
	return true
}

// plantedEntries is the maximum number of entries that are checked after a command.
const plantedEntries = 50_000

// inspection finds what a command leaves in writable directories that programs run,
// load or obey later.
type inspection struct {
	dirs  *listings
	roots []string
	spare map[string]bool // granted themselves, or read-only: only others change them
	since stamp
	known map[string]stamp // what was there when the command started
	left  int
}

// inspect prepares the check of a command that is about to start.
func inspect(dirs *listings, roots []string) *inspection {
	look := &inspection{dirs: dirs, spare: map[string]bool{}, known: map[string]stamp{}}
	look.add(roots)
	look.since = now()
	return look
}

// add adds writable files and directories.
func (in *inspection) add(roots []string) {
	for _, root := range roots {
		in.spare[root] = true
		if info, err := os.Lstat(root); err == nil && info.IsDir() && !in.dirs.names.match(root) {
			in.roots = append(in.roots, root)
		}
	}
}

// Watch starts to watch for what a process in a sandbox plants: what it changes or
// creates of the names of [Sandbox.ReadOnly]. The returned function renames that in
// the directories, which the process of this profile can write, and returns notes
// for the model.
func Watch() func(readOnly []string, p *sandbox.Profile, dirs []string) (notes []string) {
	since := now()
	return func(readOnly []string, p *sandbox.Profile, dirs []string) (notes []string) {
		in := inspect(newListings(newNames(readOnly), nil), dirs)
		in.since = since
		in.exclude(p.ReadOnly)
		for _, path := range in.setAside() {
			notes = append(notes, asideNote(path))
		}
		return notes
	}
}

// asideNote tells that a file was set aside.
func asideNote(path string) string {
	name, _, _ := strings.Cut(path, sandbox.AsideSuffix)
	return name + " is protected and was set aside as " + path
}

// exclude leaves out what is read-only for the command: all paths that exist, except
// a placeholder for a repository, which others may fill.
func (in *inspection) exclude(paths []string) {
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && (!info.IsDir() || filepath.Base(path) != ".git" || isGitDir(path)) {
			in.spare[filepath.Clean(path)] = true
		}
	}
}

// remember records a file that is there before the command starts.
func (in *inspection) remember(path string) {
	if s, ok := stampOf(path); ok {
		in.known[path] = s
	}
}

// changed reports whether a file is new or was changed since the command started.
func (in *inspection) changed(path string) bool {
	s, ok := stampOf(path)
	if !ok || strings.Contains(path, sandbox.AsideSuffix) {
		return false
	}
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if in.spare[dir] && !slices.Contains(in.roots, dir) {
			return false
		}
	}
	before, known := in.known[path]
	if known {
		return s != before
	}
	return !s.before(in.since)
}

// setAside renames what is new or changed, and returns the new names.
func (in *inspection) setAside() (renamed []string) {
	in.left = plantedEntries
	for _, root := range in.roots {
		in.walk(root, "", false, func(path string) {
			if to, err := aside(root, path); err == nil {
				renamed = append(renamed, to)
			}
		})
	}
	return renamed
}

// walk reports the files below a directory. Among third-party files, only
// repositories count: packages come with settings of editors and agents.
func (in *inspection) walk(dir, rel string, foreign bool, found func(path string)) {
	listing, err := in.dirs.of(dir, rel, in.left)
	if err != nil {
		return
	}
	if in.left -= listing.size; in.left <= 0 {
		return
	}
	if listing.bare { // without a working tree
		in.git(dir, found)
		return
	}
	for i := range listing.entries {
		switch e := &listing.entries[i]; {
		case strings.Contains(e.name, sandbox.AsideSuffix), in.spare[e.path]:
		case e.name == ".git":
			in.gitEntry(e, found)
		case !foreign && e.protected:
			in.protected(e, found)
		case e.kind.IsDir():
			in.walk(e.path, rel+e.name+"/", foreign || slices.Contains(skipped, e.name), found)
		}
	}
}

// protected reports the new and changed files at a protected path; all of it if it
// is new.
func (in *inspection) protected(e *entry, found func(path string)) {
	_, known := in.known[e.path]
	switch dir := e.kind.IsDir(); {
	case !dir && in.changed(e.path), dir && !known && in.changed(e.path) && born(e.path, in.since):
		found(e.path)
	case dir:
		_ = filepath.WalkDir(e.path, func(file string, d fs.DirEntry, err error) error {
			if in.left--; err != nil || in.left <= 0 {
				return fs.SkipAll
			}
			if !d.IsDir() && in.changed(file) {
				found(file)
			}
			return nil
		})
	}
}

// gitEntry reports what is new or changed in a repository.
func (in *inspection) gitEntry(e *entry, found func(path string)) {
	switch {
	case e.kind.IsDir():
		in.git(e.path, found)
	case in.changed(e.path): // a file, or a link
		dir, ok := gitFile(e.path)
		if !ok || e.kind&fs.ModeSymlink != 0 || !in.own(dir) {
			found(e.path)
		}
	}
}

func (in *inspection) git(dir string, found func(path string)) {
	for _, path := range gitPlanted(dir, in.changed) {
		found(path)
	}
}

// own reports whether a directory belongs to a repository that is checked itself.
func (in *inspection) own(dir string) bool {
	return (strings.Contains(dir, "/.git/worktrees/") || strings.Contains(dir, "/.git/modules/")) &&
		slices.ContainsFunc(in.roots, func(root string) bool { return sandbox.Below(root, dir) })
}

// aside renames a file in a writable directory, whatever its parents are by now.
func aside(root, path string) (string, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return "", err
	}
	defer r.Close()
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return "", err
	}
	for i := range 100 {
		to := rel + sandbox.AsideSuffix
		if i > 0 {
			to = fmt.Sprintf("%s-%d", to, i)
		}
		if _, err := r.Lstat(to); err == nil {
			continue
		}
		return filepath.Join(root, to), r.Rename(rel, to)
	}
	return "", fs.ErrExist
}
