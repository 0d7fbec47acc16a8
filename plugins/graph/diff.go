package graph

import (
	"path"
	"slices"
)

// IsSource reports whether a file is analysed, or tells how modules are named.
func IsSource(name string) bool {
	return languageOf(name) != "" || moduleFiles[path.Base(name)]
}

// Diff reports what the difference between two states of a workspace may break. It
// looks at the paths that changed: what was changed or removed in them, and what is
// new. Both graphs are asked, since what used a removed function may be gone, too.
func Diff(before, after *Graph, paths []string) *Report {
	var old, now []string
	var unknown []string
	for _, name := range paths {
		was, is := before.InFile(name), after.InFile(name)
		switch tests := after.fixtures(name); {
		case len(tests) > 0:
			now = append(now, tests...)
		case len(was)+len(is) == 0 && IsSource(name) && !moduleFiles[path.Base(name)]:
			unknown = append(unknown, name)
		}
		hashes := map[string]string{}
		for _, n := range was {
			hashes[n.ID] = n.Hash
		}
		symbols := false
		for _, n := range is {
			if n.Kind == File || n.Kind == Package {
				continue
			}
			if hash, known := hashes[n.ID]; !known || hash != n.Hash {
				now, symbols = append(now, n.ID), true
			}
		}
		for _, n := range was {
			if n.Kind == File || n.Kind == Package {
				continue
			}
			if left, ok := after.Node(n.ID); !ok || left.Hash != n.Hash {
				old, symbols = append(old, n.ID), true
			}
		}
		if !symbols && len(is) > 0 { // code outside of all definitions
			now = append(now, is[0].Language()+":"+name)
		}
	}
	r := after.Impact(now...)
	r.merge(before.Impact(old...), after)
	r.Unknown = unknown
	r.Complete = len(r.Unsafe) == 0 && len(unknown) == 0
	return r
}

// merge adds what another report found in an earlier state, if it is still there.
func (r *Report) merge(o *Report, now *Graph) {
	for _, n := range o.Changed {
		if !slices.ContainsFunc(r.Changed, func(c Node) bool { return c.ID == n.ID }) {
			r.Changed = append(r.Changed, n)
		}
	}
	add := func(list *[]Affected, more []Affected) {
		known := map[string]bool{}
		for _, a := range *list {
			known[a.ID] = true
		}
		for _, a := range more {
			if n, ok := now.Node(a.ID); ok && !known[a.ID] {
				a.Node = n
				*list = append(*list, a)
			}
		}
	}
	add(&r.Functions, o.Functions)
	add(&r.Tests, o.Tests)
	for _, f := range o.Files {
		if len(now.InFile(f.Path)) > 0 && !slices.ContainsFunc(r.Files, func(have AffectedFile) bool { return have.Path == f.Path }) {
			r.Files = append(r.Files, f)
		}
	}
	for c, n := range o.Edges {
		r.Edges[c] = max(r.Edges[c], n)
	}
	r.Commands = testCommands(r.Tests)
}

// HasFiles reports whether a directory has at least n source files. It stops
// looking after a few thousand entries.
func HasFiles(root string, n int) bool {
	left := 20 * n
	return countFiles(root, &n, &left, 0)
}
