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

// names are protected names: a map from their last element, and those with a
// pattern in it.
type names struct {
	exact map[string][]string
	wild  []string
}

func newNames(patterns []string) *names {
	n := &names{exact: map[string][]string{}}
	for _, p := range patterns {
		if filepath.IsAbs(p) {
			continue
		}
		p = strings.TrimSuffix(p, "/")
		if last := filepath.Base(p); strings.Contains(last, "*") {
			n.wild = append(n.wild, p)
		} else {
			n.exact[last] = append(n.exact[last], p)
		}
	}
	return n
}

// match reports whether the end of a path is a protected name.
func (n *names) match(path string) bool {
	is := func(pattern string) bool {
		end := path
		for range strings.Count(path, "/") - strings.Count(pattern, "/") - 1 {
			_, end, _ = strings.Cut(end[1:], "/")
			end = "/" + end
		}
		ok, err := filepath.Match("/"+pattern, end)
		return err == nil && ok
	}
	return slices.ContainsFunc(n.exact[filepath.Base(path)], is) || slices.ContainsFunc(n.wild, is)
}

// plantedEntries is the maximum number of entries that are checked after a command.
const plantedEntries = 50_000

// inspection finds what a command leaves in writable directories that programs run,
// load or obey later.
type inspection struct {
	names *names
	roots []string
	spare map[string]bool // granted themselves, or read-only: only others change them
	since stamp
	known map[string]stamp // what was there when the command started
	left  int
}

// inspect prepares the check of a command that is about to start.
func inspect(n *names, roots []string) *inspection {
	in := &inspection{names: n, spare: map[string]bool{}, known: map[string]stamp{}, left: plantedEntries}
	in.add(roots)
	in.since = now()
	return in
}

// add adds writable files and directories.
func (in *inspection) add(roots []string) {
	for _, root := range roots {
		in.spare[root] = true
		if info, err := os.Lstat(root); err == nil && info.IsDir() && !in.names.match(root) {
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
		in := inspect(newNames(readOnly), dirs)
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
	for _, root := range in.roots {
		in.walk(root, false, func(path string) {
			if to, err := aside(root, path); err == nil {
				renamed = append(renamed, to)
			}
		})
	}
	return renamed
}

// walk reports the files below a directory. Among third-party files, only
// repositories count: packages come with settings of editors and agents.
func (in *inspection) walk(dir string, foreign bool, found func(path string)) {
	entries, err := readSome(dir, in.left)
	if err != nil {
		return
	}
	if in.left -= len(entries); in.left <= 0 {
		return
	}
	if filepath.Base(dir) != ".git" && isGitDir(dir) { // without a working tree
		in.git(dir, found)
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.Contains(e.Name(), sandbox.AsideSuffix), in.spare[path]:
		case e.Name() == ".git":
			in.gitEntry(path, e, found)
		case !foreign && in.names.match(path):
			in.protected(path, e, found)
		case e.IsDir():
			in.walk(path, foreign || slices.Contains(skipped, e.Name()), found)
		}
	}
}

// protected reports the new and changed files at a protected path; all of it if it
// is new.
func (in *inspection) protected(path string, e fs.DirEntry, found func(path string)) {
	_, known := in.known[path]
	switch {
	case !e.IsDir() && in.changed(path), e.IsDir() && !known && in.changed(path) && born(path, in.since):
		found(path)
	case e.IsDir():
		_ = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
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
func (in *inspection) gitEntry(path string, e fs.DirEntry, found func(path string)) {
	switch {
	case e.IsDir():
		in.git(path, found)
	case in.changed(path): // a file, or a link
		dir, ok := gitFile(path)
		if !ok || e.Type()&fs.ModeSymlink != 0 || !in.own(dir) {
			found(path)
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
