package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// storeLock is held by each process that uses a store, so that nobody removes
// objects that it has just written.
type storeLock struct{ *flock.Flock }

const lockName = "agent.lock"

// lockStore locks a store, which it creates. Another process may just have
// removed it.
func lockStore(dir string) (*storeLock, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		l := &storeLock{flock.New(filepath.Join(dir, lockName))}
		if err := l.RLock(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		locked, err := l.Stat()
		named, gone := os.Stat(l.Path())
		if err == nil && gone == nil && os.SameFile(locked, named) {
			return l, nil
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
}

// Keep keeps a snapshot for an owner, such as a session. Snapshots that nobody
// keeps are lost with the next [Prune].
func (w *Workspace) Keep(owner, id string) error {
	if _, err := parseID(id); err != nil {
		return err
	}
	dir, err := ownerDir(w.opts.Dir, owner)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, id)
	if _, err := os.Lstat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(file, []byte(id+"\n"), 0o600)
}

// Share keeps the snapshots of one owner in a store for another one as well.
func Share(store, from, to string) error {
	src, err := ownerDir(store, from)
	if err != nil {
		return err
	}
	dst, err := ownerDir(store, to)
	if err != nil {
		return err
	}
	lock, err := lockStore(store)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.CopyFS(dst, os.DirFS(src)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func ownerDir(store, owner string) (string, error) {
	if owner == "" || strings.Trim(owner, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "", fmt.Errorf("%q cannot own snapshots: expected letters, digits, - and _", owner)
	}
	return filepath.Join(store, "refs", "agent", owner), nil
}

// Forget gives up the snapshots of an owner in a store.
func Forget(store, owner string) error {
	dir, err := ownerDir(store, owner)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// Prune removes from a store what no kept snapshot needs, and the store itself if
// there is none. It does nothing while a process uses the store, and reports
// whether it ran.
func Prune(store string) (bool, error) {
	lock := flock.New(filepath.Join(store, lockName))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return false, err
	}
	defer lock.Close()
	kept, err := keptIDs(store)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(filepath.Join(store, journalName)); err == nil {
		return false, nil // an unfinished restore needs it
	}
	if len(kept) == 0 {
		// Who opens the store meanwhile makes a new one, in which nothing is removed.
		gone := fmt.Sprintf("%s.%d.gone", store, os.Getpid())
		if err := os.Rename(store, gone); err != nil {
			return true, os.RemoveAll(store)
		}
		return true, os.RemoveAll(gone)
	}
	o, err := openObjects(store)
	if err != nil {
		return false, err
	}
	return true, o.repack(kept)
}

// keptIDs returns the snapshots that somebody keeps.
func keptIDs(store string) (ids []string, err error) {
	files, err := filepath.Glob(filepath.Join(store, "refs", "agent", "*", "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if id := string(bytes.TrimSpace(data)); !slices.Contains(ids, id) && !strings.HasSuffix(file, ".tmp") {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// repack puts everything that snapshots need into one pack, and removes the rest.
// The index goes as well, since it names objects.
func (o *objects) repack(kept []string) error {
	old, err := filepath.Glob(filepath.Join(o.dir, "objects", "*", "*"))
	if err != nil {
		return err
	}
	w, err := newPackWriter(filepath.Join(o.dir, "objects", "pack"))
	if err != nil {
		return err
	}
	for _, id := range kept {
		if err := o.copySnapshot(w, id); err != nil {
			return errors.Join(err, w.discard())
		}
	}
	if err := os.Remove(filepath.Join(o.dir, indexName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, w.discard())
	}
	p, err := w.finish()
	if err != nil {
		return err
	}
	stem := strings.TrimSuffix(p.path, ".pack")
	for _, file := range old {
		if file != p.path && file != stem+".idx" {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// copySnapshot copies a commit and all that it needs into a pack.
func (o *objects) copySnapshot(w *packWriter, id string) error {
	tree, _, err := o.commit(id)
	if err != nil {
		return err
	}
	name, err := parseID(id)
	if err != nil {
		return err
	}
	return errors.Join(o.copyTo(w, kindCommit, name), o.copyTree(w, tree))
}

func (o *objects) copyTree(w *packWriter, id ID) error {
	if o.known[id] {
		return nil
	}
	entries, err := o.entries(id)
	if err != nil {
		return err
	}
	if err := o.copyTo(w, kindTree, id); err != nil {
		return err
	}
	for _, e := range entries {
		if e.kind() == typeDir {
			err = o.copyTree(w, e.id)
		} else {
			err = o.copyTo(w, kindBlob, e.id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *objects) copyTo(w *packWriter, k kind, id ID) error {
	if o.known[id] {
		return nil
	}
	o.known[id] = true
	data, err := o.get(k, id)
	if err != nil {
		return err
	}
	return w.add(k, id, data)
}
