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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/snapshot"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimVar); dir != "" {
		victim(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// open opens a workspace in root with a new store.
func open(t testing.TB, root string, change ...func(*snapshot.Options)) (*snapshot.Workspace, string) {
	t.Helper()
	opts := snapshot.Options{Root: root, Dir: filepath.Join(t.TempDir(), "store")}
	for _, c := range change {
		c(&opts)
	}
	w, err := snapshot.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, opts.Dir
}

func take(t testing.TB, w *snapshot.Workspace, paths ...string) snapshot.Snapshot {
	t.Helper()
	s, err := w.Take(t.Context(), snapshot.TakeOptions{Paths: paths})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write writes files given as "name: content"; a name that ends in a slash is a
// directory.
func write(t testing.TB, root string, files ...string) {
	t.Helper()
	for _, f := range files {
		name, content, _ := strings.Cut(f, ": ")
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tree describes everything below root but .git.
func tree(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if e.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " -> %s", to)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// restore takes back what changed from one snapshot to another.
func restore(t testing.TB, w *snapshot.Workspace, from, to snapshot.Snapshot) []snapshot.Conflict {
	t.Helper()
	p, err := w.Plan(t.Context(), from.ID, to.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	more, err := w.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return append(p.Conflicts, more...)
}

func describe(t testing.TB, w *snapshot.Workspace, from, to snapshot.Snapshot) string {
	t.Helper()
	changes, err := w.Changes(from.ID, to.ID)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		line := string(c.Kind) + " " + c.Path
		if c.From != "" {
			line += " from " + c.From
		}
		if c.Mode != 0 && c.Kind != snapshot.Create {
			line += fmt.Sprintf(" mode %o", c.Mode)
		}
		if c.Dir {
			line += " dir"
		}
		d, err := w.Diff(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if d.Binary {
			line += " binary"
		} else if d.Text != "" {
			line += fmt.Sprintf(" +%d -%d", d.Added, d.Removed)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestChangesAndRestore(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.txt: one\ntwo\n", "crlf: x\r\ny\r\n", "dir/gone: 1\n", "dir/stays: 2\n", "moved: long enough\n", "empty/", "bin: \x00\x01", "swap: file\n", "tree/in/it: 1\n", "0600: secret\n")
	if err := errors.Join(os.Symlink("a.txt", filepath.Join(root, "link")), os.Chmod(filepath.Join(root, "0600"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w, _ := open(t, root)
	before, was := take(t, w), tree(t, root)

	write(t, root, "a.txt: one\n2\nthree\n", "crlf: x\r\ny\r\nz\r\n", "new/deep/file: n\n", "bin: \x00\x02", "new/void/")
	for _, err := range []error{
		os.Remove(filepath.Join(root, "dir/gone")), os.Rename(filepath.Join(root, "moved"), filepath.Join(root, "renamed")),
		os.Remove(filepath.Join(root, "empty")), os.Remove(filepath.Join(root, "swap")), os.Mkdir(filepath.Join(root, "swap"), 0o755),
		os.WriteFile(filepath.Join(root, "swap/inside"), nil, 0o644), os.RemoveAll(filepath.Join(root, "tree")), os.WriteFile(filepath.Join(root, "tree"), nil, 0o644),
		os.Remove(filepath.Join(root, "link")), os.Symlink("bin", filepath.Join(root, "link")), os.Chmod(filepath.Join(root, "0600"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	after, is := take(t, w), tree(t, root)
	const want = `modify 0600 mode 755
modify a.txt +2 -1
modify bin binary
modify crlf +1 -0
delete dir/gone +0 -1
delete empty dir
modify link +1 -1
create new/deep/file +1 -0
create new/void dir
rename renamed from moved
modify swap mode 755 +0 -1
create swap/inside
modify tree mode 644 dir
delete tree/in/it +0 -1`
	if got := describe(t, w, before, after); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	if c := restore(t, w, after, before); len(c) > 0 {
		t.Errorf("conflicts: %v", c)
	}
	if got := tree(t, root); got != was {
		t.Errorf("after undo:\n%s\nwant:\n%s", got, was)
	}
	if s := take(t, w); describe(t, w, before, s) != "" {
		t.Errorf("undone, and yet changed:\n%s", describe(t, w, before, s))
	}
	if c := restore(t, w, before, after); len(c) > 0 {
		t.Errorf("conflicts: %v", c)
	}
	if got := tree(t, root); got != is {
		t.Errorf("after redo:\n%s\nwant:\n%s", got, is)
	}
}

func TestLaterChangesSurvive(t *testing.T) {
	tests := []struct {
		name, before, after, now, want string
		conflict                       bool
	}{
		{"other lines", "1\n2\n3\n4\n5\n", "1\nTWO\n3\n4\n5\n", "1\nTWO\n3\n4\nFIVE\n", "1\n2\n3\n4\nFIVE\n", false},
		{"same line", "1\n2\n3\n", "1\nTWO\n3\n", "1\nMINE\n3\n", "1\nMINE\n3\n", true},
		{"undone by hand", "1\n2\n", "1\nTWO\n", "1\n2\n", "1\n2\n", false},
		{"binary", "\x00a", "\x00b", "\x00c", "\x00c", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, "f: "+tt.before, "other: o")
			w, _ := open(t, root)
			before := take(t, w)
			write(t, root, "f: "+tt.after)
			after := take(t, w)
			write(t, root, "f: "+tt.now, "other: mine", "mine: m")
			conflicts := restore(t, w, after, before)
			got, err := os.ReadFile(filepath.Join(root, "f"))
			if err != nil || string(got) != tt.want || (len(conflicts) > 0) != tt.conflict {
				t.Errorf("%q, conflicts %v, %v; want %q", got, conflicts, err, tt.want)
			}
			for name, want := range map[string]string{"other": "mine", "mine": "m"} {
				if got, _ := os.ReadFile(filepath.Join(root, name)); string(got) != want {
					t.Errorf("%s: %q", name, got)
				}
			}
		})
	}
}

func TestOverwrite(t *testing.T) {
	root := t.TempDir()
	write(t, root, "f: 1\n")
	w, _ := open(t, root)
	before := take(t, w)
	write(t, root, "f: 2\n")
	after := take(t, w)
	write(t, root, "f: 3\n")
	p, err := w.Plan(t.Context(), after.ID, before.ID, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "f: 4\n") // after the plan
	if c, err := w.Apply(t.Context(), p); err != nil || len(c) != 1 {
		t.Errorf("a change after the plan: %v, %v", c, err)
	}
	if p, err = w.Plan(t.Context(), after.ID, before.ID, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if c, err := w.Apply(t.Context(), p); err != nil || len(c) > 0 {
		t.Errorf("%v, %v", c, err)
	}
	if got, _ := os.ReadFile(filepath.Join(root, "f")); string(got) != "1\n" {
		t.Errorf("%q", got)
	}
}

func TestLeftOut(t *testing.T) {
	root := t.TempDir()
	write(t, root, ".gitignore: *.log\nbuild/\n", "kept: 1", "x.log: ignored", "build/out: ignored", "build/named: 1\n", "sub/.gitignore: !keep.log", "sub/keep.log: 1",
		"nested/.git/HEAD: x", "nested/file: 1", "big: "+strings.Repeat("x", 2000), "secret.env: KEY", ".git/config: x")
	w, store := open(t, root, func(o *snapshot.Options) {
		o.MaxFileSize = 1000
		o.Leave = func(path string) string {
			if strings.HasSuffix(path, ".env") {
				return "it holds secrets"
			}
			return ""
		}
	})
	s := take(t, w, "build/named")
	left := func(list []snapshot.Left) (text []string) {
		for _, l := range list {
			text = append(text, l.Path+": "+l.Reason)
		}
		return text
	}
	want := []string{"big: it is larger than 0 MiB", "nested: it is another git repository", "secret.env: it holds secrets"}
	if got := left(s.Left); !slices.Equal(got, want) {
		t.Errorf("left out: %v, want %v", got, want)
	}
	for _, dir := range []string{"nested", "build", "sub"} {
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root, "big: small now", "secret.env: OTHER", "x.log: 2")
	after := take(t, w)
	const changes = "delete build/named +0 -1\ndelete sub/.gitignore +0 -1\ndelete sub/keep.log +0 -1"
	if got := describe(t, w, s, after); got != changes {
		t.Errorf("changes:\n%s\nwant:\n%s", got, changes)
	}
	if list, err := w.LeftOut(s.ID, after.ID); err != nil || !slices.Equal(left(list), []string{"secret.env: it holds secrets", "big: it is larger than 0 MiB", "nested: it is another git repository"}) {
		t.Errorf("left out of the changes: %v, %v", list, err)
	}
	restore(t, w, after, s)
	for name, want := range map[string]string{"build/named": "1\n", "big": "small now", "secret.env": "OTHER", "sub/keep.log": "1"} {
		if got, _ := os.ReadFile(filepath.Join(root, name)); string(got) != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if data := allObjects(t, store); strings.Contains(data, "KEY") || strings.Contains(data, "ignored") {
		t.Error("the store holds what was left out")
	}
	write(t, root, ".gitignore: ")
	if got := describe(t, w, after, take(t, w)); !strings.Contains(got, "create x.log") {
		t.Errorf("x.log is no longer ignored, but the changes are:\n%s", got)
	}
}

// allObjects returns the content of all objects of a store.
func allObjects(t *testing.T, store string) string {
	t.Helper()
	git(t, store, "fsck", "--strict", "--no-dangling")
	return git(t, store, "cat-file", "--batch-all-objects", "--batch")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	cmd := exec.Command("git", append([]string{"--git-dir=" + dir}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestTooLarge(t *testing.T) {
	root := t.TempDir()
	for i := range 30 {
		write(t, root, fmt.Sprintf("d%d/f: %d", i, i))
	}
	w, _ := open(t, root, func(o *snapshot.Options) { o.MaxFiles = 20 })
	var large *snapshot.TooLargeError
	if _, err := w.Take(t.Context(), snapshot.TakeOptions{}); !errors.As(err, &large) {
		t.Errorf("error %v", err)
	}
	w, _ = open(t, root, func(o *snapshot.Options) { o.MaxBytes = 10 })
	if _, err := w.Take(t.Context(), snapshot.TakeOptions{}); !errors.As(err, &large) {
		t.Errorf("error %v", err)
	}
}

// TestManyFiles: a snapshot that is a pack, an index that survives, and a store
// that another git reads.
func TestManyFiles(t *testing.T) {
	root := t.TempDir()
	for i := range 1000 {
		write(t, root, fmt.Sprintf("d%d/s%d/f%d: content %d\n", i%7, i%31, i, i))
	}
	dir := filepath.Join(t.TempDir(), "store")
	first := reopen(t, root, dir)
	one := take(t, first)
	if err := errors.Join(first.Keep("s1", one.ID), first.Close()); err != nil {
		t.Fatal(err)
	}
	allObjects(t, dir)
	write(t, root, "d1/new: x\n", "d0/s0/f0: other\n")
	second := reopen(t, root, dir)
	two := take(t, second)
	if got, want := describe(t, second, one, two), "modify d0/s0/f0 +1 -1\ncreate d1/new +1 -0"; got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	if err := errors.Join(second.Keep("s2", two.ID), second.Close(), snapshot.Forget(dir, "s1")); err != nil {
		t.Fatal(err)
	}
	if ok, err := snapshot.Prune(dir); err != nil || !ok {
		t.Fatalf("prune: %v, %v", ok, err)
	}
	if data := allObjects(t, dir); strings.Contains(data, "content 0\n") || !strings.Contains(data, "content 1\n") {
		t.Error("the pruned store holds the wrong objects")
	}
	third := reopen(t, root, dir)
	if got := describe(t, third, two, take(t, third)); got != "" {
		t.Errorf("changes after pruning:\n%s", got)
	}
	if ok, err := snapshot.Prune(dir); err != nil || ok {
		t.Errorf("pruned a store in use: %v, %v", ok, err)
	}
	if err := errors.Join(third.Close(), snapshot.Forget(dir, "s2")); err != nil {
		t.Error(err)
	}
	if ok, err := snapshot.Prune(dir); err != nil || !ok {
		t.Errorf("prune: %v, %v", ok, err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store of no snapshots: %v", err)
	}
}

func reopen(t *testing.T, root, dir string) *snapshot.Workspace {
	t.Helper()
	w, err := snapshot.Open(snapshot.Options{Root: root, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestOnlyPaths: a limited snapshot sees the paths given, and the next one the rest.
func TestOnlyPaths(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/x: 1\n", "b/y: 1\n")
	w, _ := open(t, root)
	one := take(t, w)
	write(t, root, "a/x: 22\n", "b/y: 22\n", "a/new: 1\n", "c/z: 1\n")
	two, err := w.Take(t.Context(), snapshot.TakeOptions{Only: true, Paths: []string{"a/x", "a/new"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describe(t, w, one, two), "create a/new +1 -0\nmodify a/x +1 -1"; got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	if got, want := describe(t, w, two, take(t, w)), "modify b/y +1 -1\ncreate c/z +1 -0"; got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
}

// TestUndoAnything: whatever is done at random, undo brings the former tree back,
// and redo the later one.
func TestUndoAnything(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	root := t.TempDir()
	w, _ := open(t, root)
	for round := range rounds {
		mutate(t, r, root, 30)
		before, was := take(t, w), tree(t, root)
		mutate(t, r, root, 1+r.IntN(30))
		after, is := take(t, w), tree(t, root)
		if c := restore(t, w, after, before); len(c) > 0 || tree(t, root) != was {
			t.Fatalf("round %d, undo: conflicts %v\n%s\nwant\n%s\nchanges\n%s", round, c, tree(t, root), was, describe(t, w, before, after))
		}
		if c := restore(t, w, before, after); len(c) > 0 || tree(t, root) != is {
			t.Fatalf("round %d, redo: conflicts %v\n%s\nwant\n%s", round, c, tree(t, root), is)
		}
	}
}

// mutate does n random things below root.
func mutate(t testing.TB, r *rand.Rand, root string, n int) {
	t.Helper()
	name := func() string {
		p := root
		for range 1 + r.IntN(3) {
			p = filepath.Join(p, string("abcd"[r.IntN(4)])+strings.Repeat("x", r.IntN(2)))
		}
		return p
	}
	for range n {
		p := name()
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			_ = os.MkdirAll(filepath.Dir(p), 0o755)
			_ = os.WriteFile(p, []byte(strconv.Itoa(r.IntN(100))), 0o644)
		case 4:
			_ = os.RemoveAll(p)
		case 5:
			_ = os.Rename(p, name())
		case 6:
			_ = os.Symlink("a", p)
		case 7:
			_ = os.Chmod(p, []fs.FileMode{0o600, 0o644, 0o755, 0o700}[r.IntN(4)])
			if info, err := os.Lstat(p); err == nil && info.IsDir() {
				_ = os.Chmod(p, 0o755)
			}
		case 8:
			_ = os.MkdirAll(p, []fs.FileMode{0o755, 0o700}[r.IntN(2)])
		case 9:
			if f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0); err == nil {
				fmt.Fprintln(f, r.IntN(100))
				f.Close()
			}
		}
	}
}

// victimVar names the directory of a process that is killed in the middle of an
// undo.
const victimVar = "TEST_SNAPSHOT_VICTIM"

// victim undoes and redoes without end.
func victim(dir string) {
	w, err := snapshot.Open(snapshot.Options{Root: filepath.Join(dir, "root"), Dir: filepath.Join(dir, "store")})
	if err != nil {
		panic(err)
	}
	ids := [2]string{}
	for i := range ids {
		id, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			panic(err)
		}
		ids[i] = string(id)
	}
	fmt.Println("ready")
	for i := 0; ; i++ {
		p, err := w.Plan(context.Background(), ids[(i+1)%2], ids[i%2], nil)
		if err != nil {
			panic(err)
		}
		if _, err := w.Apply(context.Background(), p); err != nil {
			panic(err)
		}
		if _, err := w.Take(context.Background(), snapshot.TakeOptions{}); err != nil {
			panic(err)
		}
	}
}

// TestKilled: a process that is killed in the middle of an undo or a snapshot
// leaves one of the two states, or what [Workspace.Recover] makes one of them.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	kills := 300
	if testing.Short() {
		kills = 25
	}
	dir := t.TempDir()
	root, store := filepath.Join(dir, "root"), filepath.Join(dir, "store")
	r := rand.New(rand.NewPCG(1, 2))
	write(t, root, "keep: 1\n")
	mutate(t, r, root, 150)
	w := reopen(t, root, store)
	one, was := take(t, w), tree(t, root)
	mutate(t, r, root, 150)
	two, is := take(t, w), tree(t, root)
	if err := errors.Join(w.Keep("s", one.ID), w.Keep("s", two.ID), w.Close(),
		os.WriteFile(filepath.Join(dir, "0"), []byte(one.ID), 0o600), os.WriteFile(filepath.Join(dir, "1"), []byte(two.ID), 0o600)); err != nil {
		t.Fatal(err)
	}
	recovered := 0
	for kill := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimVar+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = out.Read(make([]byte, 16)) // it is ready
		pause := time.NewTimer(time.Duration(r.IntN(20_000)) * time.Microsecond)
		<-pause.C
		if err := errors.Join(err, cmd.Process.Kill()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		w := reopen(t, root, store)
		again, err := w.Recover()
		if again {
			recovered++
		}
		if now := tree(t, root); err != nil || now != was && now != is {
			t.Fatalf("kill %d: %v, recovered %v\n%s\nwant\n%s\nor\n%s", kill, err, again, now, was, is)
		}
		take(t, w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d left an unfinished restore", kills, recovered)
	if recovered == 0 {
		t.Error("no kill hit a restore: the test proves nothing")
	}
}

func TestReadOnlyWorkspace(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("the user may write everywhere")
	}
	root := t.TempDir()
	write(t, root, "d/f: 1\n")
	w, _ := open(t, root)
	before := take(t, w)
	write(t, root, "d/f: 2\n")
	after, was := take(t, w), tree(t, root)
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(root, 0o755)
	p, err := w.Plan(t.Context(), after.ID, before.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(t.Context(), p); !errors.Is(err, fs.ErrPermission) || tree(t, root) != was {
		t.Errorf("error %v", err)
	}
}

func TestDamagedStore(t *testing.T) {
	root := t.TempDir()
	write(t, root, "f: 1\n")
	w, store := open(t, root)
	before := take(t, w)
	write(t, root, "f: 22\n")
	after := take(t, w)
	files, err := filepath.Glob(filepath.Join(store, "objects", "??", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Plan(t.Context(), after.ID, before.ID, nil); err == nil || !strings.Contains(err.Error(), "snapshot store") {
		t.Errorf("error %v", err)
	}
	if _, err := w.Plan(t.Context(), "nonsense", before.ID, nil); err == nil {
		t.Error("an invalid id was accepted")
	}
	if err := w.Keep("../x", before.ID); err == nil {
		t.Error("an owner outside of the store was accepted")
	}
}

// BenchmarkTake: a snapshot of a workspace of 10,000 files in which nothing, or
// one file, changed since the previous one.
func BenchmarkTake(b *testing.B) {
	root := b.TempDir()
	for i := range 10_000 {
		write(b, root, fmt.Sprintf("d%03d/s%02d/file%06d.go: %s", i/400, i/20%20, i, strings.Repeat(fmt.Sprintf("func f%d() {}\n", i), 200)))
	}
	for _, changed := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			w, _ := open(b, root)
			take(b, w)
			settled := time.NewTimer(50 * time.Millisecond) // after the racy window
			<-settled.C
			take(b, w)
			n := 0
			for b.Loop() {
				b.StopTimer()
				for i := range changed {
					n++
					write(b, root, fmt.Sprintf("d%03d/s%02d/file%06d.go: %d", i/400, i/20%20, i, n))
				}
				b.StartTimer()
				take(b, w)
			}
		})
	}
}
