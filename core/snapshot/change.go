package snapshot

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Kind is what happened to a path.
type Kind string

// The kinds of changes. A change of permissions alone is a Modify.
const (
	Create Kind = "create"
	Modify Kind = "modify"
	Delete Kind = "delete"
	Rename Kind = "rename"
)

// Change is a difference between two snapshots. Directories are changes only if
// they are empty, or if their permissions changed.
type Change struct {
	Path string // relative to the root, with slashes
	From string // the former path of a Rename
	Kind Kind
	Dir  bool
	// Mode is the permissions after the change, if they differ; of a link and
	// of a deleted file it is 0.
	Mode uint32

	before, after item
}

// Changes lists what changed between two snapshots, sorted by path. A file that
// disappeared and one that appeared with the same content is a Rename.
func (w *Workspace) Changes(from, to string) ([]Change, error) {
	d, err := w.differ(from, to)
	if err != nil {
		return nil, err
	}
	var all []Change
	for _, s := range d.steps {
		if d.hidden(s.path) {
			continue
		}
		c := Change{Path: s.path, Kind: Modify, before: s.from, after: s.to}
		switch {
		case s.from.mode == 0:
			c.Kind = Create
		case s.to.mode == 0:
			c.Kind = Delete
		}
		if s.to.mode != s.from.mode && s.to.kind() != typeLink {
			c.Mode = s.to.mode & permMask
		}
		c.Dir = s.from.kind() == typeDir || s.from.mode == 0 && s.to.kind() == typeDir
		all = append(all, c)
	}
	return renames(withoutParents(all)), nil
}

// difference is what differs between two snapshots.
type difference struct {
	steps    []step
	from, to note
}

func (w *Workspace) differ(from, to string) (*difference, error) {
	before, was, err := w.objects.commit(from)
	if err != nil {
		return nil, err
	}
	after, is, err := w.objects.commit(to)
	if err != nil {
		return nil, err
	}
	steps, err := w.objects.compare(before, after)
	return &difference{steps, was, is}, err
}

// hidden reports whether a path is left out of either snapshot, or in a directory
// that is: its absence is no deletion.
func (d *difference) hidden(at string) bool {
	out := func(l Left) bool { return at == l.Path || strings.HasPrefix(at, l.Path+"/") }
	return slices.ContainsFunc(d.from.Left, out) || slices.ContainsFunc(d.to.Left, out)
}

// LeftOut lists what changed between two snapshots although they do not hold it,
// as far as that is known: of repositories in the workspace it is not.
func (w *Workspace) LeftOut(from, to string) (list []Left, err error) {
	d, err := w.differ(from, to)
	if err != nil {
		return nil, err
	}
	for _, pair := range [][2][]Left{{d.to.Left, d.from.Left}, {d.from.Left, d.to.Left}} {
		for _, l := range pair[0] {
			same := func(o Left) bool { return o.Path == l.Path && (o.State == l.State || l.Reason == leftRepository) }
			listed := func(o Left) bool { return o.Path == l.Path }
			if !slices.ContainsFunc(pair[1], same) && !slices.ContainsFunc(list, listed) {
				list = append(list, l)
			}
		}
	}
	return list, nil
}

// Repositories lists the git repositories in the workspace, such as submodules,
// which a snapshot leaves out.
func (w *Workspace) Repositories(id string) ([]Left, error) {
	_, about, err := w.objects.commit(id)
	return slices.DeleteFunc(about.Left, func(l Left) bool { return l.Reason != leftRepository }), err
}

// withoutParents drops directories whose creation or deletion follows from that
// of a path in them.
func withoutParents(all []Change) []Change {
	parents := map[string]Kind{}
	for _, c := range all {
		if i := strings.LastIndexByte(c.Path, '/'); i > 0 {
			parents[c.Path[:i]] = c.Kind
		}
	}
	return slices.DeleteFunc(all, func(c Change) bool {
		return c.Dir && c.Kind != Modify && parents[c.Path] == c.Kind
	})
}

// renames joins deletions and creations of files with the same content.
func renames(all []Change) []Change {
	gone := map[ID][]int{}
	for i, c := range all {
		if c.Kind == Delete && c.before.kind() == typeRegular {
			gone[c.before.id] = append(gone[c.before.id], i)
		}
	}
	joined := map[int]bool{}
	for i := range all {
		c := &all[i]
		if c.Kind != Create || c.after.kind() != typeRegular || len(gone[c.after.id]) == 0 {
			continue
		}
		old := gone[c.after.id][0]
		gone[c.after.id] = gone[c.after.id][1:]
		joined[old] = true
		c.Kind, c.From, c.before = Rename, all[old].Path, all[old].before
		if c.before.mode == c.after.mode {
			c.Mode = 0
		}
	}
	var list []Change
	for i, c := range all {
		if !joined[i] {
			list = append(list, c)
		}
	}
	return list
}

// Diff is how the lines of a file changed.
type Diff struct {
	Text           string // in the unified format; empty if Binary
	Added, Removed int    // lines
	Binary         bool
}

// Diff returns how the content of a file changed.
func (w *Workspace) Diff(ctx context.Context, c Change) (Diff, error) {
	if c.Dir || c.before.id == c.after.id {
		return Diff{}, ctx.Err()
	}
	before, after, err := w.Contents(c)
	if err != nil {
		return Diff{}, err
	}
	old, name := "a/"+c.Path, "b/"+c.Path
	switch c.Kind {
	case Create:
		old = "/dev/null"
	case Delete:
		name = "/dev/null"
	case Rename:
		old = "a/" + c.From
	}
	return Compare(old, name, before, after), ctx.Err()
}

// Contents returns the content of a file before and after a change.
func (w *Workspace) Contents(c Change) (before, after []byte, err error) {
	if before, err = w.content(c.before); err == nil {
		after, err = w.content(c.after)
	}
	return before, after, err
}

// Compare returns how a content changed; the names are for the heading.
func Compare(old, name string, before, after []byte) Diff {
	if isBinary(before) || isBinary(after) {
		return Diff{Binary: true}
	}
	d := Diff{Text: udiff.Unified(old, name, string(before), string(after))}
	for i, line := range strings.Split(d.Text, "\n") {
		switch {
		case i < 2: // the names
		case strings.HasPrefix(line, "+"):
			d.Added++
		case strings.HasPrefix(line, "-"):
			d.Removed++
		}
	}
	return d
}

// content returns the content of a file, or the target of a link.
func (w *Workspace) content(i item) ([]byte, error) {
	if i.kind() != typeRegular && i.kind() != typeLink {
		return nil, nil
	}
	return w.objects.get(kindBlob, i.id)
}

// isBinary reports whether a file is not text, as git decides it.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}
