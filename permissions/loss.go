package permissions

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/gitindex"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// maxLost bounds the files that are counted.
const maxLost = 5000

// losses counts the files that one command would remove or empty although git
// does not have their content.
type losses struct {
	files   []string
	seen    map[string]bool
	bytes   int64
	tooMany bool
	where   string // the first path that a command names
	atMost  bool   // some of the files stay
	asked   bool   // the command needs approval anyway
	trees   map[string]*worktree
}

// worktree is what git has of a directory.
type worktree struct {
	root string
	held map[string]gitindex.Entry
}

// count adds the files at a path.
func (j *scriptJudge) count(a *shell.Access, name string) {
	l := &j.lost
	before := len(l.files)
	if names, known := j.namedIn(a); known {
		j.countNames(a, name, names)
	} else {
		j.countBelow(a, name, a.Recursive)
	}
	if len(l.files) > before {
		l.atMost = l.atMost || a.Loss == shell.LosesSome || a.Loss == shell.LosesUntracked
		if l.where == "" {
			l.where = name
		}
	}
}

func (j *scriptJudge) countBelow(a *shell.Access, name string, recursive bool) {
	l := &j.lost
	if l.tooMany = l.tooMany || len(l.files) > maxLost; l.tooMany {
		return
	}
	info, err := j.environment.Files().Stat(j.ctx, name)
	if err != nil {
		return
	}
	if !info.IsDir() {
		if info.Size() > 0 && !l.seen[name] && j.unheld(a.Loss, name, info) {
			if l.seen == nil {
				l.seen = map[string]bool{}
			}
			l.seen[name] = true
			l.files = append(l.files, name)
			l.bytes += info.Size()
		}
		return
	}
	if !recursive || (a.Unpacked || a.Loss >= shell.LosesUntracked) && path.Base(name) == ".git" {
		return
	}
	entries, err := j.environment.Files().ReadDir(j.ctx, name)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			j.countBelow(a, strings.TrimSuffix(name, "/")+"/"+e.Name(), true)
		}
	}
}

// lossesOf returns what the commands of a script lose, without what else they do.
func lossesOf(script *shell.Analysis) (list []shell.Access) {
	for a := range script.Accesses() {
		if a.Loss != shell.LosesNone {
			lost := *a
			lost.Kind = shell.List
			list = append(list, lost)
		}
	}
	return list
}

// countNamed adds the files that a script which could not be analyzed names, if it
// also names a program that removes files.
func (j *scriptJudge) countNamed(text string) {
	words := strings.FieldsFunc(stripQuotes(text), notInWord)
	removes := func(w string) bool { return slices.Contains([]string{"rm", "unlink", "shred"}, program(w)) }
	if j.mode != ModeWorkspace || j.environment == nil || len(j.lost.files) > 0 || !slices.ContainsFunc(words, removes) {
		return
	}
	for _, w := range words {
		if name, ok := j.operand(w, j.whole.dir); ok && name != j.whole.dir && slices.ContainsFunc(j.roots, func(root string) bool { return under(fold(name), root) }) {
			j.count(&shell.Access{Recursive: true, Loss: shell.LosesAll}, name)
		}
	}
	j.lost.atMost = len(j.lost.files) > 1
}

// unheld reports whether git does not have the content of a file that is lost.
func (j *scriptJudge) unheld(loss shell.Loss, name string, info fs.FileInfo) bool {
	tree := j.worktree(path.Dir(name))
	entry, tracked := gitindex.Entry{}, false
	if tree != nil {
		entry, tracked = tree.held[strings.TrimPrefix(strings.TrimPrefix(name, tree.root), "/")]
	}
	t := info.ModTime()
	same := tracked && entry.Size == uint32(info.Size()) && entry.ModTime[0] == uint32(t.Unix()) && (entry.ModTime[1] == 0 || entry.ModTime[1] == uint32(t.Nanosecond()))
	switch loss {
	case shell.LosesUntracked:
		return !tracked
	case shell.LosesModified:
		return tracked && !same
	}
	return !same
}

// worktree returns the working tree that a directory belongs to; nil if none.
func (j *scriptJudge) worktree(dir string) *worktree {
	l := &j.lost
	if tree, known := l.trees[dir]; known {
		return tree
	}
	if l.trees == nil {
		l.trees = map[string]*worktree{}
	}
	index, err := core.ReadFile(j.ctx, j.environment.Files(), j.gitDir(dir)+"/index", maxGitFile)
	var tree *worktree
	switch {
	case err == nil:
		tree = &worktree{root: dir, held: map[string]gitindex.Entry{}}
		entries, _ := gitindex.Read(index) // what cannot be read is not held
		for _, e := range entries {
			tree.held[e.Path] = e
		}
	case errors.Is(err, fs.ErrNotExist) && path.Dir(dir) != dir:
		tree = j.worktree(path.Dir(dir))
	}
	l.trees[dir] = tree
	return tree
}

// gitDir returns the directory of the repository with a working tree at dir.
func (j *scriptJudge) gitDir(dir string) string {
	name := strings.TrimSuffix(dir, "/") + "/.git"
	text, err := core.ReadFile(j.ctx, j.environment.Files(), name, 4096)
	at, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	switch at = strings.TrimSpace(at); {
	case err != nil || !ok:
		return name
	case strings.HasPrefix(at, "/"):
		return at
	}
	return path.Join(dir, at)
}

// maxHeld bounds the bytes of lost files for which a snapshot is taken.
const maxHeld = 256 << 20

// restorable reports whether what is lost can be brought back from a snapshot.
func (j *scriptJudge) restorable(l *losses) bool {
	return j.held != nil && !l.asked && !l.tooMany && l.bytes <= maxHeld && j.held(j.ctx, j.whole.session, l.files)
}

// addLosses asks about what a command or, if c is nil, redirections lose, unless it
// can be brought back.
func (j *scriptJudge) addLosses(c *shell.Command) {
	l := j.lost
	j.lost = losses{trees: l.trees}
	if len(l.files) == 0 {
		return
	}
	if j.restorable(&l) {
		j.kept += len(l.files)
		return
	}
	f := finding{subject: *j.whole, verdict: core.Ask, step: byMode, confined: true, extra: l.asked}
	verb := "overwrites "
	switch {
	case len(j.script.Unclear) > 0:
		verb = "deletes or overwrites "
	case c != nil:
		f.subject = j.part(core.Access{Scope: j.whole.Scope, Resource: c.Text, Argv: c.Argv})
		verb = "deletes or overwrites "
		if name := program(c.Argv[0]); name == "rm" || name == "find" {
			verb = "deletes "
		}
	}
	number := fmt.Sprintf("%d files", len(l.files))
	switch {
	case l.tooMany:
		number = fmt.Sprintf("more than %d files", maxLost)
	case l.atMost:
		number = "up to " + number
	}
	within := func(name string) string {
		return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(name, j.whole.dir), "/"), "the working directory")
	}
	f.why = verb + number + " with content that git does not have, in " + within(l.where)
	if len(l.files) == 1 {
		f.why = verb + within(l.files[0]) + ", whose content git does not have"
	}
	j.add(f)
}
