package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/aymanbagabas/go-udiff"
	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// Plan is what a restore would do. It is made by [Workspace.Plan].
type Plan struct {
	Steps     []Step
	Conflicts []Conflict
}

// Step is one path of a [Plan].
type Step struct {
	Path   string
	Kind   Kind // Create, Modify or Delete
	Merged bool // changed since: the later changes are kept as well
	Dir    bool // before or after

	from, to item
	links    []string // paths that are to be the same file
}

// Conflict is a path that a restore leaves as it is.
type Conflict struct {
	Path   string
	Reason string
	// Changed says that the path was changed since, and can be restored if that
	// may be lost.
	Changed bool
	Diff    string // of a text that is Changed: what restoring it would do to its lines
}

// Plan plans to take back what changed from one snapshot to another: to bring
// every path that differs from its state in from to that in to. A path that is
// not as in from any more was changed since. Such a file is merged if the changes
// are in different lines; otherwise it is a conflict, unless overwrite, which may be
// nil, says that the later changes may be lost.
func (w *Workspace) Plan(ctx context.Context, from, to string, overwrite func(path string) bool) (*Plan, error) {
	d, err := w.differ(from, to)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	for _, s := range d.steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if d.hidden(s.path) {
			p.Conflicts = append(p.Conflicts, Conflict{Path: s.path, Reason: "it was left out of a snapshot"})
			continue
		}
		now, err := w.current(s.path)
		if err != nil {
			p.Conflicts = append(p.Conflicts, Conflict{Path: s.path, Reason: err.Error()})
			continue
		}
		if err := w.plan(p, s, now, overwrite); err != nil {
			return nil, err
		}
	}
	p.link(d.to.Links)
	return p, nil
}

// link names the other paths of files that have several.
func (p *Plan) link(links [][]string) {
	for i := range p.Steps {
		s := &p.Steps[i]
		if g := slices.IndexFunc(links, func(names []string) bool { return slices.Contains(names, s.Path) }); g >= 0 && s.to.kind() == typeRegular {
			s.links = links[g]
		}
	}
}

// plan adds the step for one path.
func (w *Workspace) plan(p *Plan, s step, now item, overwrite func(path string) bool) error {
	to, merged := s.to, false
	switch {
	case now.same(s.to):
		return nil
	case now.same(s.from):
	default:
		var err error
		if to, merged, err = w.mergeItem(now, s); err != nil {
			return err
		}
		switch {
		case merged && to.same(now):
			return nil
		case merged:
		case now.kind() == typeDir || overwrite == nil || !overwrite(s.path):
			p.Conflicts = append(p.Conflicts, Conflict{s.path, "it was changed since", now.kind() != typeDir, w.lostBy(now, s)})
			return nil
		default:
			to = s.to
		}
	}
	kind := Modify
	switch {
	case now.mode == 0:
		kind = Create
	case to.mode == 0:
		kind = Delete
	}
	p.Steps = append(p.Steps, Step{
		Path: s.path, Kind: kind, Merged: merged, Dir: now.kind() == typeDir || to.kind() == typeDir, from: now, to: to,
	})
	return nil
}

// lostBy compares a file with what it would be restored to.
func (w *Workspace) lostBy(now item, s step) string {
	if now.kind() != typeRegular || s.to.mode != 0 && s.to.kind() != typeRegular {
		return ""
	}
	mine, err := w.readFile(s.path)
	to, toErr := w.content(s.to)
	if err != nil || toErr != nil || isBinary(mine) || isBinary(to) {
		return ""
	}
	return udiff.Unified("now", "restored", string(mine), string(to))
}

// mergeItem merges what changed from s.from to now with what changes from s.from
// to s.to.
func (w *Workspace) mergeItem(now item, s step) (item, bool, error) {
	for _, i := range []item{now, s.from, s.to} {
		if i.kind() != typeRegular {
			return item{}, false, nil
		}
	}
	mode := now.mode
	if now.mode == s.from.mode {
		mode = s.to.mode
	} else if s.from.mode != s.to.mode && now.mode != s.to.mode {
		return item{}, false, nil
	}
	base, err := w.content(s.from)
	if err != nil {
		return item{}, false, err
	}
	to, err := w.content(s.to)
	if err != nil {
		return item{}, false, err
	}
	mine, err := w.readFile(s.path)
	if err != nil {
		return item{}, false, err
	}
	if s.from.id != s.to.id && (isBinary(base) || isBinary(to) || isBinary(mine)) {
		return item{}, false, nil
	}
	text, ok := merge(string(base), string(mine), string(to))
	if !ok {
		return item{}, false, nil
	}
	w.mu.Lock() // not into the pack of a snapshot that may fail
	defer w.mu.Unlock()
	id, err := w.objects.put(kindBlob, []byte(text))
	return item{mode, id}, true, err
}

func (w *Workspace) readFile(at string) ([]byte, error) {
	f, err := w.files.OpenFile(at, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// current returns what is at a path, whatever the index says.
func (w *Workspace) current(at string) (item, error) {
	if ok, err := w.below(at); !ok {
		return item{}, err
	}
	info, err := w.files.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return item{}, nil
	case err != nil:
		return item{}, err
	}
	mode := treeMode(unixMode(info.Mode()))
	switch mode & typeMask {
	case typeDir:
		return item{mode: mode}, nil
	case typeLink:
		target, err := w.files.Readlink(at)
		_, id := identify(kindBlob, []byte(target))
		return item{mode, id}, err
	case typeRegular:
		data, err := w.readFile(at)
		_, id := identify(kindBlob, data)
		return item{mode, id}, err
	}
	return item{}, errors.New(leftSpecial)
}

// below reports whether the parents of a path are directories, and not links to
// some.
func (w *Workspace) below(at string) (bool, error) {
	for i := range at {
		if at[i] != '/' {
			continue
		}
		info, err := w.files.Lstat(at[:i])
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// journalName is the file in a store that says what a restore is doing.
const journalName = "agent-restore.json"

// journal is a restore under way.
type journal struct {
	Stage string // the directory with the prepared files, in the root
	Steps []journalStep
}

type journalStep struct {
	Path             string
	FromMode, ToMode uint32
	From, To         string
	Links            []string `json:",omitempty"`
}

// Apply carries out a plan. It first prepares all files and writes down what it
// is going to do: if it is interrupted, [Workspace.Recover] finishes it, and if
// it fails before the first change, nothing is changed. It returns the paths that
// are left as they are, since they changed after the plan was made or cannot be
// changed.
func (w *Workspace) Apply(ctx context.Context, p *Plan) ([]Conflict, error) {
	lock, err := w.lockRestore()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if _, err := w.recover(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil || len(p.Steps) == 0 {
		return nil, err
	}
	name := restorePrefix + strconv.Itoa(os.Getpid())
	j := journal{Stage: name}
	for _, s := range p.Steps {
		j.Steps = append(j.Steps, journalStep{s.Path, s.from.mode, s.to.mode, s.from.id.String(), s.to.id.String(), s.links})
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	record := filepath.Join(w.opts.Dir, journalName)
	if err := atomicfile.Write(record, text, 0o600); err != nil {
		return nil, err
	}
	if err := w.stage(name, p.Steps); err != nil {
		return nil, errors.Join(err, w.files.RemoveAll(name), os.Remove(record))
	}
	return w.carryOut(name, p.Steps)
}

// Recover finishes a restore that was interrupted, and reports whether there was
// one.
func (w *Workspace) Recover() (bool, error) {
	if _, err := os.Lstat(filepath.Join(w.opts.Dir, journalName)); err != nil {
		return false, nil
	}
	lock, err := w.lockRestore()
	if err != nil {
		return false, err
	}
	defer lock.Close()
	return w.recover()
}

// lockRestore makes restores of all processes wait for each other.
func (w *Workspace) lockRestore() (*flock.Flock, error) {
	lock := flock.New(filepath.Join(w.opts.Dir, "agent-restore.lock"))
	return lock, lock.Lock()
}

func (w *Workspace) recover() (bool, error) {
	data, err := os.ReadFile(filepath.Join(w.opts.Dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var j journal
	if err = errors.Join(err, json.Unmarshal(data, &j)); err != nil {
		return false, fmt.Errorf("unfinished restore %s: %w", filepath.Join(w.opts.Dir, journalName), err)
	}
	if !strings.HasPrefix(j.Stage, restorePrefix) || !filepath.IsLocal(j.Stage) {
		return false, fmt.Errorf("unfinished restore %s: invalid stage %q", filepath.Join(w.opts.Dir, journalName), j.Stage)
	}
	var steps []Step
	for _, s := range j.Steps {
		from, fromErr := parseID(s.From)
		to, toErr := parseID(s.To)
		if err := errors.Join(fromErr, toErr); err != nil {
			return false, err
		}
		steps = append(steps, Step{Path: s.Path, from: item{s.FromMode, from}, to: item{s.ToMode, to}, links: s.Links})
	}
	if err := w.stage(j.Stage, steps); err != nil {
		return false, err
	}
	_, err = w.carryOut(j.Stage, steps)
	return true, err
}

// stage writes the files of the steps into a directory in the root, so that later
// only names change.
func (w *Workspace) stage(dir string, steps []Step) error {
	if err := w.files.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for i, s := range steps {
		at := path.Join(dir, strconv.Itoa(i))
		if s.to.kind() != typeRegular && s.to.kind() != typeLink {
			continue
		}
		if now, err := w.current(at); err != nil || now.same(s.to) {
			if err != nil {
				return err
			}
			continue
		}
		if err := w.files.RemoveAll(at); err != nil {
			return err
		}
		if w.relink(dir, steps, i) {
			continue
		}
		data, err := w.content(s.to)
		if err != nil {
			return err
		}
		if err := w.create(at, s.to, data); err != nil {
			return err
		}
	}
	return nil
}

// relink stages a file as another name of one that is there already, and reports
// whether there is one.
func (w *Workspace) relink(dir string, steps []Step, i int) bool {
	for _, name := range steps[i].links {
		other := slices.IndexFunc(steps, func(s Step) bool { return s.Path == name })
		switch {
		case other >= i:
			continue
		case other >= 0:
			name = path.Join(dir, strconv.Itoa(other))
		}
		if now, err := w.current(name); err == nil && now.same(steps[i].to) && w.files.Link(name, path.Join(dir, strconv.Itoa(i))) == nil {
			return true
		}
	}
	return false
}

// create creates a file or link.
func (w *Workspace) create(at string, what item, data []byte) error {
	if what.kind() == typeLink {
		return w.files.Symlink(string(data), at)
	}
	f, err := w.files.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(data))
	return errors.Join(err, f.Chmod(fs.FileMode(what.mode&permMask)), f.Close())
}

// carryOut does what is not done yet: first it removes, the deepest paths before
// their parents, then it creates, parents first, and last it sets the permissions
// of directories, which may forbid changes below. What was changed meanwhile is
// left as it is.
func (w *Workspace) carryOut(stage string, steps []Step) (conflicts []Conflict, err error) {
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(steps[a].Path, steps[b].Path) })
	failed := map[string]error{}
	for _, i := range slices.Backward(order) {
		if err := w.remove(steps[i]); err != nil {
			failed[steps[i].Path] = err
		}
	}
	for _, i := range order {
		if err := w.place(steps[i], path.Join(stage, strconv.Itoa(i))); err != nil {
			failed[steps[i].Path] = err
		}
	}
	for _, i := range slices.Backward(order) {
		if s := steps[i]; s.to.kind() == typeDir && failed[s.Path] == nil {
			if err := w.files.Chmod(s.Path, fs.FileMode(s.to.mode&permMask)); err != nil {
				failed[s.Path] = err
			}
		}
	}
	for _, err := range failed {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return nil, fmt.Errorf("%w: only a part is restored; free some space, and the next session here finishes it", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		conflicts = append(conflicts, Conflict{Path: name, Reason: failed[name].Error()})
	}
	return conflicts, errors.Join(w.files.RemoveAll(stage), os.Remove(filepath.Join(w.opts.Dir, journalName)))
}

// remove removes what must go: what is not to be there, and a directory or file
// that takes the place of the other. A directory with other files in it stays.
func (w *Workspace) remove(s Step) error {
	if s.from.mode == 0 || s.to.mode != 0 && (s.to.kind() == typeDir) == (s.from.kind() == typeDir) {
		return nil
	}
	now, err := w.current(s.Path)
	if err != nil || !now.same(s.from) {
		return err
	}
	err = w.files.Remove(s.Path)
	if s.from.kind() == typeDir && err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// errChanged means that a path is not as it was when the plan was made.
var errChanged = errors.New("it was changed meanwhile")

// place puts what is to be there in its place. Permissions of directories follow.
func (w *Workspace) place(s Step, staged string) error {
	if s.to.mode == 0 {
		return nil
	}
	now, err := w.current(s.Path)
	isDir := s.to.kind() == typeDir
	switch {
	case err != nil || now.same(s.to) || isDir && now.kind() == typeDir:
		return err
	case now.mode != 0 && !now.same(s.from) || now.kind() == typeDir:
		return errChanged
	case isDir:
		if err := w.files.MkdirAll(s.Path, 0o755); err != nil {
			return err
		}
		if ok, err := w.below(s.Path + "/"); !ok {
			return cmp.Or(err, errChanged)
		}
		return nil
	}
	if err := w.files.MkdirAll(path.Dir(s.Path), 0o755); err != nil {
		return err
	}
	if ok, err := w.below(s.Path); !ok {
		return cmp.Or(err, errChanged)
	}
	return w.files.Rename(staged, s.Path)
}
