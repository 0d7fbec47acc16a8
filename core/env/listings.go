package env

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
)

// listings remember what directories contain that matters to a sandbox: others would
// be read again before and after each command. They are safe for concurrent use.
type listings struct {
	names  *names
	secret func(rel string) bool // by a path relative to a root; nil for none
	clock  func() stamp          // the time by the clock of file systems

	mu     sync.Mutex
	dirs   map[string]*listing // by path
	steady map[uint64]bool     // by device, see steady
}

// listing is what a directory contained when it had the stamp.
type listing struct {
	at      stamp
	rel     string // of its entries, with a slash at the end
	size    int    // how many entries it has, also others
	entries []entry
	bare    bool // it is the directory of a repository
}

// entry is a directory, a protected name or a secret.
type entry struct {
	path, name        string
	kind              fs.FileMode
	protected, secret bool
}

// maxListings is how many directories are remembered.
const maxListings = 60_000

func newListings(names *names, secret func(rel string) bool) *listings {
	return &listings{names: names, secret: secret, clock: now, dirs: map[string]*listing{}, steady: map[uint64]bool{}}
}

// of returns the listing of a directory whose entries have the prefix rel, or of at
// most n entries.
func (l *listings) of(dir, rel string, n int) (*listing, error) {
	at, ok := stampOf(dir)
	if ok {
		if known := l.known(dir); known != nil && known.at == at && known.rel == rel {
			return known, nil
		}
	}
	since := l.clock()
	found, err := l.read(dir, rel, n)
	if err == nil && ok && found.size < n && at.settled(since) && l.trusts(at.device(), dir) {
		found.at = at
		l.remember(dir, found)
	}
	return found, err
}

func (l *listings) known(dir string) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dirs[dir]
}

func (l *listings) remember(dir string, found *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dirs) >= maxListings {
		clear(l.dirs)
	}
	l.dirs[dir] = found
}

// trusts reports whether a device, on which a directory is, has stamps that tell
// whether a directory changed.
func (l *listings) trusts(device uint64, dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	is, ok := l.steady[device]
	if !ok {
		is = steady(dir)
		l.steady[device] = is
	}
	return is
}

func (l *listings) read(dir, rel string, n int) (*listing, error) {
	all, err := readSome(dir, n)
	if err != nil {
		return nil, err
	}
	found := &listing{rel: rel, size: len(all)}
	repository := 0
	for _, e := range all {
		at := entry{name: e.Name(), kind: e.Type()}
		switch at.name {
		case "HEAD", "objects", "refs":
			repository++
		}
		at.path = filepath.Join(dir, at.name)
		at.protected = l.names.match(at.path)
		at.secret = !at.protected && l.secret != nil && at.kind&fs.ModeSymlink == 0 && l.secret(rel+at.name)
		if at.protected || at.secret || at.kind.IsDir() || at.name == ".git" {
			found.entries = append(found.entries, at)
		}
	}
	found.bare = repository == 3 && !strings.HasSuffix(dir, "/.git")
	return found, nil
}
