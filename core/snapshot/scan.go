package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/gitignore"
)

// File types in a mode, as in git's trees and in stat(2).
const (
	typeMask    = 0o170000
	typeDir     = 0o040000
	typeRegular = 0o100000
	typeLink    = 0o120000
	permMask    = 0o777
)

// stamp is what the system says about a file. As long as it stays the same, so
// does the content.
type stamp struct {
	mode         uint32 // type and permissions
	size         int64
	mtime, ctime int64 // nanoseconds
	inode        uint64
	links        uint64 // names of a file; 0 if it has one
}

func (s stamp) kind() uint32 { return s.mode & typeMask }

// unixMode returns a mode as stat(2) has it.
func unixMode(m fs.FileMode) uint32 {
	switch {
	case m.IsRegular():
		return typeRegular | uint32(m.Perm())
	case m.IsDir():
		return typeDir | uint32(m.Perm())
	case m&fs.ModeSymlink != 0:
		return typeLink | permMask
	}
	return uint32(m.Perm())
}

// node is a file or directory as it was last seen. The tree of all nodes is the
// index of a workspace.
type node struct {
	name  string
	stamp stamp
	id    ID     // of the blob or tree; zero if it is not known yet
	racy  bool   // changed so shortly before it was read that the stamp proves nothing
	left  string // why it is left out; empty if it is not
	// written is what the parent's tree says about it.
	written item

	// ignored means that git ignores it: it is kept only since it was named, and
	// of a directory only what was named.
	ignored bool

	isDir bool
	kids  []*node // sorted by name
	dirty bool    // kids were added or removed
	rules []gitignore.Rule
	ruled stamp // of the .gitignore with the rules
}

// racyWindow covers the clock ticks of file systems, which are 1 to 10 ms apart.
const racyWindow = int64(20 * time.Millisecond)

// parallel is how many directories are scanned, and files read, at once.
const parallel = 4

// restorePrefix begins the name of the directory in which a restore prepares
// files. Scans ignore it.
const restorePrefix = ".agent-restore-"

// scan compares a workspace with its index.
type scan struct {
	ctx  context.Context
	opts *Options
	now  int64
	// only limits the scan to paths and their parents; nil means everything.
	only map[string]bool
	// secret leaves out the files that changed.
	secret bool
	// forced are paths, with their parents, that are kept although they are ignored.
	forced map[string]bool

	slots chan struct{}
	wg    sync.WaitGroup

	mu      sync.Mutex
	changed []changedFile
	files   int
	bytes   int64 // of changed
	err     error
}

// changedFile is a file whose content has to be read.
type changedFile struct {
	path string
	node *node
}

// run scans the workspace into root.
func (s *scan) run(root *node) error {
	f, err := os.Open(s.opts.Root)
	if err != nil {
		return err
	}
	s.now, s.slots = time.Now().UnixNano(), make(chan struct{}, parallel)
	s.dir(f, root, "", s.opts.levels, false)
	s.wg.Wait()
	return s.err
}

// fail ends the scan.
func (s *scan) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
}

func (s *scan) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	return s.err != nil
}

// dir scans the open directory n, and closes it. With relist set, rules above
// have changed.
func (s *scan) dir(f *os.File, n *node, path string, levels []gitignore.Level, relist bool) {
	defer f.Close()
	now, err := statOpen(f)
	if err != nil || s.failed() {
		return
	}
	stale := now != n.stamp || n.racy
	if stale || s.rulesChanged(f, n) {
		relist = s.readRules(f, n) || relist
	}
	levels = below(levels, path, n.rules)
	if stale || relist {
		s.list(f, n, path, levels)
		n.stamp, n.racy = now, now.ctime > s.now-racyWindow
	}
	for _, kid := range n.kids {
		at := path + kid.name
		switch {
		case s.only != nil && !s.only[at]:
		case kid.isDir:
			s.enter(f, kid, at, levels, relist)
		default:
			s.file(f, n, kid, at)
		}
	}
}

// below adds the rules of a directory.
func below(levels []gitignore.Level, dir string, rules []gitignore.Rule) []gitignore.Level {
	if len(rules) == 0 {
		return levels
	}
	return append(levels[:len(levels):len(levels)], gitignore.Level{Dir: dir, Rules: rules})
}

// enter scans a subdirectory, in its own goroutine if one is free.
func (s *scan) enter(parent *os.File, kid *node, at string, levels []gitignore.Level, relist bool) {
	f, err := openDir(parent, kid.name)
	if err != nil {
		kid.leave(leftUnreadable)
		return
	}
	select {
	case s.slots <- struct{}{}:
		s.wg.Go(func() {
			s.dir(f, kid, at+"/", levels, relist)
			<-s.slots
		})
	default:
		s.dir(f, kid, at+"/", levels, relist)
	}
}

// file compares a file with its stamp.
func (s *scan) file(dir *os.File, parent, n *node, at string) {
	now, err := statAt(dir, n.name)
	if err != nil { // it has just gone: list the directory again next time
		parent.racy = true
		return
	}
	if now == n.stamp && !n.racy && (n.left != "" || n.id != ID{}) {
		s.count(nil, 0)
		return
	}
	reason := s.opts.leaves(at, now)
	if s.secret && now != n.stamp && now.kind() == typeRegular {
		reason = leftSecret
	}
	n.stamp, n.left = now, reason
	if reason != "" {
		n.id = ID{}
		return
	}
	n.racy = now.ctime > s.now-racyWindow
	s.count(&changedFile{path: at, node: n}, now.size)
}

// count counts a file, and remembers it if it is to be read.
func (s *scan) count(c *changedFile, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files++
	if c != nil {
		s.changed = append(s.changed, *c)
		s.bytes += size
	}
	if s.err == nil && (s.files > s.opts.MaxFiles || s.bytes > s.opts.MaxBytes) {
		s.err = &TooLargeError{Root: s.opts.Root, Files: s.opts.MaxFiles, Bytes: s.opts.MaxBytes}
	}
}

// rulesChanged reports whether the .gitignore differs from the one whose rules
// are known.
func (s *scan) rulesChanged(dir *os.File, n *node) bool {
	if n.ruled == (stamp{}) { // a new one changes the directory
		return false
	}
	now, _ := statAt(dir, ".gitignore")
	return now != n.ruled
}

// maxIgnoreFile limits the size of a .gitignore.
const maxIgnoreFile = 1 << 20

// readRules reads the .gitignore of a directory, and reports whether the rules
// may have changed.
func (s *scan) readRules(dir *os.File, n *node) bool {
	now, err := statAt(dir, ".gitignore")
	if err != nil || now.kind() != typeRegular || now.size > maxIgnoreFile {
		had := n.rules != nil
		n.rules, n.ruled = nil, stamp{}
		return had
	}
	if now == n.ruled {
		return false
	}
	data, err := os.ReadFile(dir.Name() + string(os.PathSeparator) + ".gitignore")
	if err != nil {
		return false
	}
	n.rules, n.ruled = gitignore.Parse(string(data)), now
	if now.ctime > s.now-racyWindow {
		n.ruled.ctime = -1 // read it again
	}
	return true
}

// leave leaves a directory out.
func (n *node) leave(reason string) {
	n.left, n.kids, n.dirty, n.stamp = reason, nil, true, stamp{}
}

// list reads the names of a directory, and keeps what is known of them.
func (s *scan) list(f *os.File, n *node, path string, levels []gitignore.Level) {
	entries, err := f.ReadDir(-1)
	if err != nil {
		n.leave(leftUnreadable)
		return
	}
	if path != "" && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }) {
		n.leave(leftRepository)
		return
	}
	n.left = ""
	known := make(map[string]*node, len(n.kids))
	for _, kid := range n.kids {
		known[kid.name] = kid
	}
	kept := 0
	kids := make([]*node, 0, len(entries))
	for _, e := range entries {
		at := path + e.Name()
		ignored := !s.opts.Plain && (n.ignored || gitignore.Ignored(levels, at, e.IsDir()))
		if e.Name() == ".git" || strings.HasPrefix(e.Name(), restorePrefix) || s.opts.skip[at] || ignored && !s.forced[at] {
			continue
		}
		kid := known[e.Name()]
		if kid == nil || kid.isDir != e.IsDir() {
			kid = &node{name: e.Name(), isDir: e.IsDir(), dirty: e.IsDir()}
		} else {
			kept++
		}
		kid.racy = kid.racy || kid.isDir && kid.ignored != ignored
		kid.ignored = ignored
		kids = append(kids, kid)
	}
	slices.SortFunc(kids, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	n.dirty = n.dirty || kept != len(n.kids) || kept != len(kids)
	n.kids = kids
}

// TooLargeError means that a directory is too large for snapshots.
type TooLargeError struct {
	Root  string
	Files int   // the limit
	Bytes int64 // the limit
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is too large for snapshots: more than %d files or %d MiB", e.Root, e.Files, e.Bytes>>20)
}
