package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Bounds of the search below one place.
const (
	maxDepth   = 6
	maxFolders = 50_000
)

const manifestFile = "SKILL.md"

// found is a SKILL.md and where it was found.
type found struct {
	place *Place
	at    string // its path
	dir   string // on disk; empty for a bundled one
	rel   string // relative to the place, with slashes
	file  string // its name as it is written
	state fileState
}

// newFound returns a found SKILL.md; dir is empty for a bundled one.
func newFound(p *Place, dir, rel, file string, state fileState) found {
	f := found{place: p, dir: dir, rel: rel, file: file, state: state}
	if dir == "" {
		f.at = string(p.Scope) + "/" + path.Join(rel, file)
	} else {
		f.at = filepath.Join(dir, file)
	}
	return f
}

// walker looks for skills in one place.
type walker struct {
	place    Place
	files    fs.FS
	real     string // path of the place, symbolic links resolved
	within   string // symbolic links may not leave this folder; empty = anywhere
	seen     map[string]bool
	folders  int
	most     int // folders
	found    []found
	problems []Problem
}

// walk lists the skills of a place, ordered by path. Seen contains the real paths
// of the folders visited so far, across places.
func walk(p Place, seen map[string]bool) ([]found, []Problem) {
	w := &walker{place: p, files: p.Files, seen: seen, most: maxFolders}
	if w.files == nil {
		real, err := filepath.EvalSymlinks(p.Dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.problem(p.Dir, "cannot read: %v", err)
			}
			return nil, w.problems
		}
		if p.Within != "" {
			if w.within, err = filepath.EvalSymlinks(p.Within); err != nil {
				w.problem(p.Dir, "cannot read: %v", err)
				return nil, w.problems
			}
		}
		if !w.inside(real) {
			w.problem(p.Dir, "the symbolic link leads out of the project: ignored")
			return nil, w.problems
		}
		w.real, w.files = real, os.DirFS(real)
	}
	if p.Plugin != "" {
		for _, rel := range p.Folders {
			w.take(rel, filepath.Join(w.real, filepath.FromSlash(rel)), manifestFile, false)
		}
		return w.found, w.problems
	}
	w.scan()
	return w.found, w.problems
}

func (w *walker) problem(at, format string, args ...any) {
	w.problems = append(w.problems, Problem{Path: at, Diagnostics: []Diagnostic{{File: at, Line: 1, Column: 1, Severity: Warning, Message: fmt.Sprintf(format, args...)}}})
}

func (w *walker) onDisk(rel string) string {
	if w.real == "" {
		return path.Join(string(w.place.Scope), rel)
	}
	return filepath.Join(w.real, filepath.FromSlash(rel))
}

// inside reports whether a real path may be read.
func (w *walker) inside(real string) bool { return w.within == "" || within(w.within, real) }

func within(top, at string) bool {
	rel, err := filepath.Rel(top, at)
	return err == nil && filepath.IsLocal(rel)
}

// folder is a folder to scan.
type folder struct {
	rel, real string
	depth     int
	rules     []ignoreRule
}

// scan scans the place breadth-first, so that what a limit leaves out is what lies
// deepest.
func (w *walker) scan() {
	queue := []folder{{rel: ".", real: w.real}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if w.folders++; w.folders > w.most {
			w.problem(w.onDisk("."), "more than %d folders: %d of them and what is below are left out, such as %s", w.most, len(queue)+1, w.onDisk(at.rel))
			w.problems[len(w.problems)-1].Incomplete = true
			return
		}
		queue = append(queue, w.visit(at)...)
	}
}

// visit scans a folder and returns those below it. One with a SKILL.md is a skill,
// including everything below it.
func (w *walker) visit(at folder) (below []folder) {
	if w.real != "" {
		if w.seen[at.real] {
			return nil
		}
		w.seen[at.real] = true
		if at.rel != "." && w.takeQuickly(at) {
			return nil
		}
	}
	entries, err := fs.ReadDir(w.files, at.rel)
	if err != nil {
		w.problem(w.onDisk(at.rel), "cannot read: %v", err)
		return nil
	}
	if name, linked := manifestEntry(entries); name != "" {
		if at.rel != "." {
			w.take(at.rel, at.real, name, linked)
			return nil
		}
		w.problem(w.onDisk(name), "a skill needs its own folder: move it to %s", path.Join("NAME", name))
	}
	if at.depth == maxDepth {
		return nil
	}
	rules := append(at.rules[:len(at.rules):len(at.rules)], readIgnore(w.files, at.rel)...)
	for _, e := range entries {
		rel := path.Join(at.rel, e.Name())
		if skipped(e.Name()) || ignored(rules, rel) {
			continue
		}
		if real, ok := w.folder(e, rel, at.real); ok {
			below = append(below, folder{rel, real, at.depth + 1, rules})
		}
	}
	return below
}

// takeQuickly takes a skill without listing its folder, if its SKILL.md is a
// regular file of exactly this name: most are.
func (w *walker) takeQuickly(at folder) bool {
	file := at.real + string(filepath.Separator) + manifestFile
	state, ok := regularFile(file)
	if !ok {
		return false
	}
	w.found = append(w.found, found{place: &w.place, at: file, dir: at.real, rel: at.rel, file: manifestFile, state: state})
	return true
}

// folder returns the real path of an entry that is a folder, or a link to one.
func (w *walker) folder(e fs.DirEntry, below, parent string) (string, bool) {
	if e.Type()&fs.ModeSymlink == 0 || w.real == "" {
		return strings.TrimSuffix(parent, string(filepath.Separator)) + string(filepath.Separator) + e.Name(), e.IsDir()
	}
	info, err := fs.Stat(w.files, below)
	if err != nil || !info.IsDir() {
		return "", false
	}
	return w.follow(below)
}

// follow returns where a link leads, if that may be read.
func (w *walker) follow(rel string) (string, bool) {
	real, err := filepath.EvalSymlinks(w.onDisk(rel))
	if err != nil {
		w.problem(w.onDisk(rel), "cannot read: %v", err)
		return "", false
	}
	if !w.inside(real) {
		w.problem(w.onDisk(rel), "the symbolic link leads out of the project: ignored")
		return "", false
	}
	return real, true
}

var keptEdits = lazy.Regexp(`.\.orig(-[0-9]+)?$`)

// skipped reports whether a folder is hidden, contains dependencies, or keeps what
// the user edited in an installed skill.
func skipped(name string) bool {
	return name == "node_modules" || strings.Contains(name, ".orig") && keptEdits().MatchString(name) || name != "." && strings.HasPrefix(name, ".")
}

// manifestName returns the name of a folder's SKILL.md, ignoring case.
func manifestName(entries []fs.DirEntry) string {
	name, _ := manifestEntry(entries)
	return name
}

// manifestEntry is manifestName; linked reports whether it is a symbolic link.
func manifestEntry(entries []fs.DirEntry) (name string, linked bool) {
	for _, e := range entries {
		if !e.IsDir() && strings.EqualFold(e.Name(), "SKILL.md") && (name == "" || e.Name() == "SKILL.md") {
			name, linked = e.Name(), e.Type()&fs.ModeSymlink != 0
		}
	}
	return name, linked
}

func (w *walker) take(rel, real, name string, linked bool) {
	if linked && w.real != "" {
		if _, ok := w.follow(path.Join(rel, name)); !ok {
			return
		}
	}
	info, err := fs.Stat(w.files, path.Join(rel, name))
	if err != nil || !info.Mode().IsRegular() {
		w.problem(w.onDisk(path.Join(rel, name)), "not a readable regular file")
		return
	}
	if w.real == "" {
		real = ""
	}
	w.found = append(w.found, newFound(&w.place, real, rel, name, stateOf(info)))
}

// ReadFolder reads one skill, given its folder or its SKILL.md.
func ReadFolder(at string) (*Skill, error) {
	at, err := filepath.Abs(at)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(at); err != nil {
		return nil, err
	} else if !info.IsDir() {
		at = filepath.Dir(at)
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil, err
	}
	name := manifestName(entries)
	if name == "" {
		return nil, fmt.Errorf("no SKILL.md in %s", at)
	}
	f := newFound(&Place{Scope: ScopeUser, Dir: filepath.Dir(at)}, at, filepath.Base(at), name, fileState{})
	s, problem := f.read()
	if problem != nil {
		return nil, problem
	}
	return s, nil
}

// read reads and parses a skill.
func (f found) read() (*Skill, *Problem) {
	files := f.place.Files
	if f.dir != "" {
		files = os.DirFS(f.dir)
	} else if sub, err := fs.Sub(files, f.rel); err == nil {
		files = sub
	}
	data, err := readFile(files, f.file, maxFile+1)
	if err != nil {
		return nil, &Problem{Path: f.at, Diagnostics: []Diagnostic{{File: f.at, Line: 1, Column: 1, Severity: Error, Message: err.Error()}}}
	}
	m, diagnostics := Parse(f.at, data)
	if m == nil {
		return nil, &Problem{Path: f.at, Diagnostics: diagnostics}
	}
	folder := CleanName(path.Base(f.rel))
	if f.rel == "." {
		folder = CleanName(f.place.Plugin)
	}
	r := &report{file: f.at, list: diagnostics}
	switch {
	case m.Name == "":
		m.Name = folder
		r.add(Note, 2, 1, "missing name: the folder's name %q is used", folder)
	case !strings.EqualFold(m.Name, folder):
		r.add(Note, 2, 1, "the name %q differs from the folder's name %q", m.Name, folder)
	}
	if m.Name == "" {
		r.add(Error, 2, 1, "missing name, and the folder's name is not valid: use letters, digits and hyphens")
		return nil, &Problem{Path: f.at, Diagnostics: r.sorted()}
	}
	if f.file != "SKILL.md" {
		r.add(Note, 1, 1, "the file is named %q: other programs look for SKILL.md", f.file)
	}
	if plugin := f.place.Plugin; plugin != "" {
		m.Name, m.Body = plugin+":"+m.Name, f.place.Fill(m.Body)
	}
	return &Skill{
		Manifest: *m, Scope: f.place.Scope, Base: f.place.Base, Dir: f.dir, File: f.at, Files: files,
		Hash: sumOf(data), State: StateOn, Diagnostics: r.sorted(), HookVars: f.place.HookVars,
	}, nil
}

// sumOf returns the SHA-256 of data in hex.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readFile reads at most the given number of bytes of a file.
func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
