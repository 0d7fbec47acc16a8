package snapshot

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Graft returns a snapshot that is like one, but has some paths as they are in
// another.
func (w *Workspace) Graft(one, other Snapshot, paths []string) (Snapshot, error) {
	tree, about, err := w.objects.commit(one.ID)
	if err != nil {
		return Snapshot{}, err
	}
	from, _, err := w.objects.commit(other.ID)
	if err != nil {
		return Snapshot{}, err
	}
	w.mu.Lock() // not into the pack of a snapshot that may fail
	defer w.mu.Unlock()
	if tree, err = w.objects.graft(tree, from, paths); err != nil {
		return Snapshot{}, err
	}
	text, err := json.Marshal(about)
	if err != nil {
		return Snapshot{}, err
	}
	id, err := w.objects.putCommit(tree, text)
	return Snapshot{ID: id.String(), Left: about.Left}, err
}

func (o *objects) putCommit(tree ID, note []byte) (ID, error) {
	return o.put(kindCommit, fmt.Appendf(nil, "tree %s\nauthor agent <> %d +0000\ncommitter agent <> %[2]d +0000\n\nsnapshot\n\n%s\n", tree, time.Now().Unix(), note))
}

// graft returns a tree like to, with paths as in from.
func (o *objects) graft(to, from ID, paths []string) (ID, error) {
	all, err := o.entries(to)
	if err != nil {
		return ID{}, err
	}
	other, err := o.entries(from)
	if err != nil {
		return ID{}, err
	}
	if all == nil {
		all = map[string]item{}
	}
	below := map[string][]string{}
	for _, p := range paths {
		name, rest, deep := strings.Cut(p, "/")
		a, b := all[name], other[name]
		switch {
		case deep && (a.kind() == typeDir || b.kind() == typeDir):
			below[name] = append(below[name], rest)
		case b.mode == 0:
			delete(all, name)
		default:
			all[name] = b
		}
	}
	for name, rest := range below {
		a, b := all[name], other[name]
		mode := a.mode
		if a.kind() != typeDir {
			mode, a.id = b.mode, ID{}
		}
		if b.kind() != typeDir {
			b.id = ID{}
		}
		id, err := o.graft(a.id, b.id, rest)
		if err != nil {
			return ID{}, err
		}
		if kids, err := o.entries(id); err != nil {
			return ID{}, err
		} else if len(kids) == 0 && b.kind() != typeDir {
			delete(all, name)
			continue
		}
		all[name] = item{mode, id}
	}
	var lines []treeLine
	for name, i := range all {
		lines = append(lines, lineOf(name, i))
	}
	return o.put(kindTree, treeText(lines))
}
