package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// item is what is at a path; the zero item is nothing.
type item struct {
	mode uint32 // type and permissions
	id   ID
}

func (i item) kind() uint32 { return i.mode & typeMask }

// same reports whether two items are the same: of directories, only their
// permissions count.
func (i item) same(other item) bool {
	return i.mode == other.mode && (i.id == other.id || i.kind() == typeDir)
}

// treeLine is an entry of a tree.
type treeLine struct {
	key  string // git sorts a directory as if its name ended in a slash
	text []byte
}

func lineOf(name string, i item) treeLine {
	key := name
	if i.kind() == typeDir {
		key += "/"
	}
	return treeLine{key, append(fmt.Appendf(nil, "%o %s\x00", i.mode, name), i.id[:]...)}
}

// treeText returns the content of a tree.
func treeText(lines []treeLine) (data []byte) {
	slices.SortFunc(lines, func(a, b treeLine) int { return strings.Compare(a.key, b.key) })
	for _, l := range lines {
		data = append(data, l.text...)
	}
	return data
}

// putTree writes the trees that changed. Modes have all permissions, which git
// reads as the ones it knows.
func (o *objects) putTree(n *node) error {
	var lines []treeLine
	changed := n.dirty || n.id == ID{}
	for _, kid := range n.kids {
		if kid.isDir && kid.kept() {
			if err := o.putTree(kid); err != nil {
				return err
			}
		}
		var now item
		if kid.kept() && kid.id != (ID{}) {
			now = item{treeMode(kid.stamp.mode), kid.id}
			lines = append(lines, lineOf(kid.name, now))
		}
		changed = changed || now != kid.written
		kid.written = now
	}
	if !changed {
		return nil
	}
	var err error
	n.id, err = o.put(kindTree, treeText(lines))
	n.dirty = err != nil
	return err
}

// kept reports whether a snapshot holds the node.
func (n *node) kept() bool { return n.left == "" && n.stamp != (stamp{}) }

// treeMode returns the mode of a tree's entry. Permissions of links are none.
func treeMode(mode uint32) uint32 {
	if mode&typeMask == typeLink {
		return typeLink
	}
	return mode & (typeMask | permMask)
}

// commit returns the tree of a snapshot and its note.
func (o *objects) commit(id string) (tree ID, about note, err error) {
	name, err := parseID(id)
	if err != nil {
		return ID{}, note{}, err
	}
	data, err := o.get(kindCommit, name)
	if err != nil {
		return ID{}, note{}, err
	}
	head, rest, _ := strings.Cut(string(data), "\n")
	_, text, _ := strings.Cut(rest, "\n\nsnapshot\n\n")
	tree, err = parseID(strings.TrimPrefix(head, "tree "))
	return tree, about, errors.Join(err, json.Unmarshal([]byte(text), &about))
}

// entries reads a tree.
func (o *objects) entries(id ID) (map[string]item, error) {
	if id == (ID{}) {
		return nil, nil
	}
	data, err := o.get(kindTree, id)
	if err != nil {
		return nil, err
	}
	all := map[string]item{}
	for len(data) > 0 {
		head, rest, found := bytes.Cut(data, []byte{0})
		mode, name, _ := strings.Cut(string(head), " ")
		m, err := strconv.ParseUint(mode, 8, 32)
		if err != nil || !found || len(rest) < len(ID{}) || name == "" || strings.ContainsAny(name, "/") || name == "." || name == ".." {
			return nil, fmt.Errorf("tree %s is damaged", id)
		}
		all[name], data = item{uint32(m), ID(rest)}, rest[len(ID{}):]
	}
	return all, nil
}

// step takes a path from one item to another.
type step struct {
	path     string
	from, to item
}

// compare lists the paths that differ between two trees, sorted by path.
func (o *objects) compare(from, to ID) ([]step, error) {
	steps, err := o.compareBelow(nil, "", from, to)
	slices.SortFunc(steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	return steps, err
}

func (o *objects) compareBelow(steps []step, at string, from, to ID) ([]step, error) {
	if from == to {
		return steps, nil
	}
	before, err := o.entries(from)
	if err != nil {
		return nil, err
	}
	after, err := o.entries(to)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for name := range names {
		a, b := before[name], after[name]
		if !a.same(b) {
			steps = append(steps, step{at + name, a, b})
		}
		var x, y ID
		if a.kind() == typeDir {
			x = a.id
		}
		if b.kind() == typeDir {
			y = b.id
		}
		if steps, err = o.compareBelow(steps, at+name+"/", x, y); err != nil {
			return nil, err
		}
	}
	return steps, nil
}
