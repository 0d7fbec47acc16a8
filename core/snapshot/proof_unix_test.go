//go:build unix

package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core/snapshot"
)

// runGit runs git in a working tree.
func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("needs git")
	}
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// exact describes all files below a directory, with times and contents.
func exact(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		data := []byte(nil)
		if info.Mode().IsRegular() {
			data, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %v %v %x\n", path, info.Mode(), info.ModTime().UnixNano(), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGitUntouched: whatever is recorded, undone and redone, the user's
// repository stays as it is, byte by byte: index, HEAD, stash, refs, objects.
func TestGitUntouched(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/a: 1\n", "b: 1\n", "c: 1\n", ".gitignore: *.log\n", "kept.log: 1\n", ".gitattributes: *.txt filter=upper eol=crlf\n", "x.txt: lower\n")
	runGit(t, root, "init", "-q", "-b", "main")
	runGit(t, root, "add", "-A")
	runGit(t, root, "add", "-f", "kept.log")
	runGit(t, root, "commit", "-q", "-m", "one")
	write(t, root, "b: stashed\n")
	runGit(t, root, "stash", "-q")
	runGit(t, root, "branch", "other")
	runGit(t, root, "tag", "v1")
	write(t, root, "b: staged\n")
	runGit(t, root, "add", "b")
	write(t, root, "b: modified\n", "untracked: 1\n")
	runGit(t, root, "config", "filter.upper.clean", "touch "+filepath.Join(root, "filter-ran"))
	git := exact(t, filepath.Join(root, ".git"))

	w, _ := open(t, root)
	r := rand.New(rand.NewPCG(7, 7))
	for range 10 {
		before, was := take(t, w), tree(t, root)
		mutate(t, r, root, 20)
		after, is := take(t, w), tree(t, root)
		restore(t, w, after, before)
		if tree(t, root) != was {
			t.Fatal("undo")
		}
		restore(t, w, before, after)
		if tree(t, root) != is {
			t.Fatal("redo")
		}
		restore(t, w, after, before)
	}
	if got := exact(t, filepath.Join(root, ".git")); got != git {
		t.Errorf("the repository changed:\n%s\nwas:\n%s", got, git)
	}
	if _, err := os.Lstat(filepath.Join(root, "filter-ran")); err == nil {
		t.Error("a filter of the repository ran")
	}
	if status := runGit(t, root, "-c", "filter.upper.clean=cat", "status", "--porcelain"); status != "MM b\n?? untracked\n" {
		t.Errorf("status:\n%s", status)
	}
}

// TestTrackedButIgnored: what git tracks is recorded even if a rule ignores it.
func TestTrackedButIgnored(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "sub")
	write(t, top, ".gitignore: *.log\nbuild/\n", "sub/x.log: 1\n", "sub/build/deep/keep: 1\n", "sub/build/out: 1\n", "sub/later.log: 1\n")
	runGit(t, top, "init", "-q")
	runGit(t, top, "add", "-f", "sub/x.log", "sub/build/deep/keep")
	w, _ := open(t, root)
	before := take(t, w)
	write(t, root, "x.log: 2\n", "build/deep/keep: 2\n", "build/out: 2\n", "later.log: 2\n")
	after := take(t, w)
	if got, want := describe(t, w, before, after), "modify build/deep/keep +1 -1\nmodify x.log +1 -1"; got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	restore(t, w, after, before)
	runGit(t, top, "add", "-f", "sub/later.log")
	before = take(t, w)
	write(t, root, "later.log: 3\n")
	if got, want := describe(t, w, before, take(t, w)), "modify later.log +1 -1"; got != want {
		t.Errorf("changes after git add:\n%s\nwant:\n%s", got, want)
	}
}

// TestHardLinks: paths of the same file are the same file again.
func TestHardLinks(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a: 1\n", "alone: 1\n", "d/x: x\n")
	link := func(from, to string) {
		t.Helper()
		if err := os.Link(filepath.Join(root, from), filepath.Join(root, to)); err != nil {
			t.Fatal(err)
		}
	}
	link("a", "b")
	link("a", "d/c")
	link("d/x", "d/y")
	w, _ := open(t, root)
	before, was := take(t, w), tree(t, root)
	same := func(names ...string) {
		t.Helper()
		first, err := os.Stat(filepath.Join(root, names[0]))
		for _, name := range names[1:] {
			other, otherErr := os.Stat(filepath.Join(root, name))
			if err := errors.Join(err, otherErr); err != nil || !os.SameFile(first, other) {
				t.Errorf("%s and %s are not the same file: %v", names[0], name, err)
			}
		}
	}
	for name, change := range map[string]func(){
		"modified": func() {
			if err := os.Truncate(filepath.Join(root, "a"), 0); err != nil {
				t.Fatal(err)
			}
		},
		"deleted": func() { os.Remove(filepath.Join(root, "a")); os.RemoveAll(filepath.Join(root, "d")) },
		"split":   func() { os.Remove(filepath.Join(root, "b")); write(t, root, "b: other\n") },
	} {
		change()
		after, is := take(t, w), tree(t, root)
		if c := restore(t, w, after, before); len(c) > 0 || tree(t, root) != was {
			t.Errorf("%s, undo: %v\n%s", name, c, tree(t, root))
		}
		same("a", "b", "d/c")
		same("d/x", "d/y")
		if restore(t, w, before, after); tree(t, root) != is {
			t.Errorf("%s, redo:\n%s\nwant:\n%s", name, tree(t, root), is)
		}
		restore(t, w, take(t, w), before)
	}
}

// TestTwoSessions: two processes that record the same directory at the same time
// keep what they need, and each takes its own changes back.
func TestTwoSessions(t *testing.T) {
	root, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	for i := range 300 {
		write(t, root, fmt.Sprintf("d%d/f%d: %d\n", i%5, i, i))
	}
	was := tree(t, root)
	var wg sync.WaitGroup
	for s := range 2 {
		wg.Go(func() {
			w := reopen(t, root, store)
			defer w.Close()
			name := func(i int) string { return fmt.Sprintf("d%d/f%d", (i*2+s)%5, i*2+s) }
			var first, last snapshot.Snapshot
			var paths []string
			for i := range 20 {
				paths = append(paths, name(i))
			}
			peek := func() (s snapshot.Snapshot) {
				if _, err := w.Take(t.Context(), snapshot.TakeOptions{}); err != nil {
					t.Error(err)
				}
				s, err := w.Peek(t.Context(), paths)
				if err := errors.Join(err, w.Keep(fmt.Sprintf("s%d", len(paths)), s.ID)); err != nil {
					t.Error(err)
				}
				return s
			}
			first = peek()
			for _, p := range paths {
				if err := os.WriteFile(filepath.Join(root, p), []byte("changed\n"), 0o644); err != nil {
					t.Error(err)
				}
				last = peek()
			}
			p, err := w.Plan(t.Context(), last.ID, first.ID, nil)
			if err == nil {
				_, err = w.Apply(t.Context(), p)
			}
			if err != nil || len(p.Steps) != 20 {
				t.Errorf("undo: %v, %d steps", err, len(p.Steps))
			}
		})
	}
	wg.Wait()
	if now := tree(t, root); now != was {
		t.Errorf("after both undid:\n%s\nwant:\n%s", now, was)
	}
	if ok, err := snapshot.Prune(store); err != nil || !ok {
		t.Errorf("prune: %v, %v", ok, err)
	}
	allObjects(t, store)
}

// fullVar names a directory: the test binary mounts full and read-only file systems
// there and works on them.
const fullVar = "TEST_SNAPSHOT_FULL"

// TestFullDisk: a full disk during a snapshot or an undo loses nothing, and
// neither does a workspace that is mounted read-only.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullVar); dir != "" {
		fullDisk(t, dir)
		return
	}
	dir := t.TempDir()
	write(t, dir, "root/", "store/")
	script := `mount -t tmpfs -o size=4m,nr_inodes=400 full "$1/root" && mount -t tmpfs -o size=1m full "$1/store" || { echo cannot mount; exit 9; }; shift; exec "$@"`
	cmd := exec.Command("unshare", "-Urm", "sh", "-c", script, "sh", dir, os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), fullVar+"="+dir)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "cannot mount") || errors.Is(err, exec.ErrNotFound) || strings.HasPrefix(string(out), "unshare:") {
		t.Skipf("needs an unprivileged user namespace with tmpfs: %v: %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// fill fills a disk, but for some bytes.
func fill(t *testing.T, dir string, leave int) {
	t.Helper()
	name := filepath.Join(dir, ".git", "filler")
	write(t, dir, ".git/HEAD: ")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, block := 0, make([]byte, 4096)
	for {
		n, err := f.Write(block)
		if size += n; errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(int64(max(0, size-leave))); err != nil {
		t.Fatal(err)
	}
}

func fullDisk(t *testing.T, dir string) {
	root, mount := filepath.Join(dir, "root"), filepath.Join(dir, "store")
	store := filepath.Join(mount, "s")
	for i := range 20 {
		write(t, root, fmt.Sprintf("d%d/f%d: %s", i%3, i, strings.Repeat(fmt.Sprintf("%d %d\n", i, i*i), 2000)))
	}
	w := reopen(t, root, store)
	before := take(t, w)

	// The store's disk is full: the snapshot fails, and works when there is space.
	fill(t, mount, 0)
	write(t, root, "new: "+strings.Repeat("unlike all others ", 5000), "d1/f1: short\n")
	for range 2 {
		if _, err := w.Take(t.Context(), snapshot.TakeOptions{}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("snapshot on a full disk: %v", err)
		}
	}
	if p, err := w.Plan(t.Context(), before.ID, before.ID, nil); err != nil || len(p.Steps) > 0 {
		t.Errorf("the store is damaged: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(mount, ".git")); err != nil {
		t.Fatal(err)
	}
	after, is := take(t, w), tree(t, root)
	allObjects(t, store)
	if got, want := describe(t, w, before, after), "modify d1/f1 +1 -2000\ncreate new +1 -0"; got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}

	// The workspace's disk is full: nothing is changed.
	if err := os.RemoveAll(filepath.Join(root, "d0")); err != nil {
		t.Fatal(err)
	}
	gone, isGone := take(t, w), tree(t, root)
	fill(t, root, 8192)
	p, err := w.Plan(t.Context(), gone.ID, after.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(t.Context(), p); !errors.Is(err, syscall.ENOSPC) || tree(t, root) != isGone {
		t.Errorf("undo on a full disk: %v\n%s\nwant:\n%s", err, tree(t, root), isGone)
	}
	if err := os.RemoveAll(filepath.Join(root, ".git")); err != nil {
		t.Fatal(err)
	}
	if c := restore(t, w, gone, after); len(c) > 0 || tree(t, root) != is {
		t.Errorf("undo with space again: %v", c)
	}

	// It gets full in the middle: the rest follows when there is space.
	many := take(t, w)
	for i := range 3 {
		if err := os.RemoveAll(filepath.Join(root, fmt.Sprintf("d%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	empty := take(t, w)
	fillInodes(t, root, 22) // the 20 files, where they are prepared, and one of three directories
	if p, err = w.Plan(t.Context(), empty.ID, many.ID, nil); err != nil {
		t.Fatal(err)
	}
	_, err = w.Apply(t.Context(), p)
	t.Logf("out of inodes: %v", err)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("undo without inodes: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(root, ".git")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recover(); err != nil {
		t.Error(err)
	}
	if c := restore(t, w, empty, many); len(c) > 0 || tree(t, root) != is {
		t.Errorf("recovered: %v\n%s\nwant:\n%s", c, tree(t, root), is)
	}
	readOnly(t, w, root)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// fillInodes uses up a disk's inodes, but for some.
func fillInodes(t *testing.T, dir string, leave int) {
	t.Helper()
	var names []string
	for i := 0; ; i++ {
		name := filepath.Join(dir, ".git", fmt.Sprint("i", i))
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, nil, 0o644)
		}
		if errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for _, name := range names[len(names)-min(leave, len(names)):] {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// readOnly takes snapshots of a workspace that is mounted read-only.
func readOnly(t *testing.T, w *snapshot.Workspace, root string) {
	before := take(t, w)
	write(t, root, "d1/f1: again\n")
	after, was := take(t, w), tree(t, root)
	if out, err := exec.Command("mount", "-o", "remount,ro", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s := take(t, w); s.ID != after.ID {
		t.Error("a read-only workspace changed")
	}
	p, err := w.Plan(t.Context(), after.ID, before.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(context.Background(), p); !errors.Is(err, syscall.EROFS) || tree(t, root) != was {
		t.Errorf("undo in a read-only workspace: %v", err)
	}
}
