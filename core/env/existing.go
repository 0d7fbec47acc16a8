package env

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Existing returns the existing paths among absolute ones whose last elements may
// be patterns of filepath.Match, sorted.
func Existing(patterns []string) []string {
	paths := newPlaces(patterns).existing(nil)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// places are paths to look for, as a tree of their elements. Most of a long list of
// secrets does not exist: nothing is looked for below a missing directory, and a
// directory of which many elements are wanted is listed.
type places struct {
	path     string
	wanted   bool // not only a directory of others
	below    map[string]*places
	folded   map[string][]*places // by names in lower case: some file systems ignore it
	patterns []string             // of names below
}

// worthListing is how many names in a directory are looked up one by one at most.
const worthListing = 16

func newPlaces(patterns []string) *places {
	root := &places{}
	for _, pattern := range patterns {
		root.add(filepath.Clean(pattern))
	}
	return root
}

func (p *places) add(pattern string) {
	dir, last := filepath.Split(pattern)
	volume := filepath.VolumeName(dir)
	p = p.child(volume + string(filepath.Separator))
	for name := range strings.FieldsFuncSeq(dir[len(volume):], func(r rune) bool { return r == filepath.Separator }) {
		p = p.child(name)
	}
	switch {
	case last == "":
		p.wanted = true
	case strings.ContainsAny(last, `*?[`):
		p.patterns = append(p.patterns, last)
	default:
		p.child(last).wanted = true
	}
}

func (p *places) child(name string) *places {
	if c := p.below[name]; c != nil {
		return c
	}
	if p.below == nil {
		p.below, p.folded = map[string]*places{}, map[string][]*places{}
	}
	c := &places{path: filepath.Join(p.path, name)}
	p.below[name] = c
	lower := strings.ToLower(name)
	p.folded[lower] = append(p.folded[lower], c)
	return c
}

// existing appends the places that exist to paths, some of them more than once. The
// directory p exists.
func (p *places) existing(paths []string) []string {
	if len(p.patterns) == 0 && len(p.below) <= worthListing {
		return p.each(paths, func(string) bool { return true })
	}
	names, err := readNames(p.path)
	if err != nil { // it may still be possible to look names up
		return p.each(paths, func(string) bool { return true })
	}
	for _, name := range names {
		for _, c := range p.folded[strings.ToLower(name)] {
			paths = c.look(paths)
		}
		for _, pattern := range p.patterns {
			if ok, err := filepath.Match(pattern, name); ok || err != nil && name == pattern {
				paths = append(paths, filepath.Join(p.path, name))
			}
		}
	}
	return p.each(paths, notASCII)
}

// each looks for the names below that match.
func (p *places) each(paths []string, match func(name string) bool) []string {
	for name, c := range p.below {
		if match(name) {
			paths = c.look(paths)
		}
	}
	return paths
}

// look appends p, if it exists, and what exists below.
func (p *places) look(paths []string) []string {
	if _, err := os.Lstat(p.path); err != nil {
		return paths
	}
	if p.wanted {
		paths = append(paths, p.path)
	}
	return p.existing(paths)
}

// notASCII reports whether a name may have several forms, of which a directory
// lists one.
func notASCII(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII })
}

func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Expand returns the existing paths that match a path whose last element is a
// pattern of filepath.Match, and any other path as it is, for something that may
// start later.
func Expand(pattern string) []string {
	if !strings.ContainsAny(filepath.Base(pattern), `*?[`) {
		return []string{pattern}
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return []string{pattern} // not a pattern
	}
	return paths
}
