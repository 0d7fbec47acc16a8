package changes_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is a session's record in memory.
type record struct {
	t      *testing.T
	root   string
	tr     *changes.Tracker
	events []event.Event
}

func newRecord(t *testing.T, change ...func(*changes.Options)) *record {
	t.Helper()
	r := &record{t: t, root: t.TempDir()}
	opts := changes.Options{
		Session: "s", Roots: []string{r.root}, Dir: filepath.Join(t.TempDir(), "snapshots"),
		Note: func(_ context.Context, body event.Body) { r.add(body) },
	}
	for _, c := range change {
		c(&opts)
	}
	r.tr = changes.New(opts)
	t.Cleanup(func() {
		if err := r.tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *record) add(bodies ...event.Body) {
	for _, b := range bodies {
		r.events = append(r.events, event.Event{Seq: event.Seq(len(r.events) + 1), Body: b})
	}
}

func (r *record) input(text string) { r.add(event.User{Content: model.TextParts(text)}) }

// call runs f as a call of a tool with the given scope.
func (r *record) call(scope core.Scope, resource string, f func()) {
	after := r.tr.Before(r.t.Context(), &core.Call{}, []core.Access{{Scope: scope, Resource: resource}})
	f()
	r.add(after(r.t.Context())...)
}

func (r *record) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *record) expect(files ...string) {
	r.t.Helper()
	for _, f := range files {
		name, want, _ := strings.Cut(f, ": ")
		got, err := os.ReadFile(filepath.Join(r.root, name))
		if want == "none" {
			if err == nil {
				r.t.Errorf("%s is there", name)
			}
		} else if string(got) != want {
			r.t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func (r *record) history() changes.History {
	r.t.Helper()
	h, err := changes.Read(func() iter.Seq2[event.Event, error] {
		return func(yield func(event.Event, error) bool) {
			for _, e := range r.events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}())
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *record) revert(source string, list []change, err error) changes.Reverted {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := r.tr.Revert(r.t.Context(), list, changes.RevertOptions{Source: source})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range out.Events {
		r.add(e)
	}
	return out
}

type change = changes.Change

func TestUndoAndRedo(t *testing.T) {
	r := newRecord(t)
	r.write("a", "1\n")
	r.write("mine", "1\n")
	r.input("first")
	r.call(core.ScopeWrite, filepath.Join(r.root, "a"), func() { r.write("a", "2\n") })
	r.write("mine", "2\n") // the user's, between two calls
	r.call(core.ScopeShell, "make", func() { r.write("b/c", "new\n") })
	r.input("second")
	r.call(core.ScopeShell, "rm", func() { os.Remove(filepath.Join(r.root, "a")) })
	r.call(core.ScopeRead, "", func() {})

	if h := r.history(); len(h.Turns) != 2 || len(h.Turns[0].Changes) != 2 || len(h.Turns[1].Changes) != 1 {
		t.Fatalf("history %+v", h)
	}
	undo := func() changes.Reverted {
		list, err := r.history().Last()
		return r.revert(changes.SourceUndo, list, err)
	}
	undo()
	r.expect("a: 2\n", "b/c: new\n", "mine: 2\n")
	undo()
	r.expect("a: 1\n", "b/c: none", "mine: 2\n")
	if _, err := r.history().Last(); !errors.Is(err, changes.ErrNothing) {
		t.Errorf("undo of nothing: %v", err)
	}
	if got := r.history().TakenBack(); len(got) != 2 {
		t.Errorf("the model learns of %q", got)
	}
	redo := func() {
		list, err := r.history().Undone()
		r.revert(changes.SourceRedo, list, err)
	}
	redo()
	r.expect("a: 2\n", "b/c: new\n", "mine: 2\n")
	redo()
	r.expect("a: none", "b/c: new\n", "mine: 2\n")
	list, err := r.history().Since(r.history().Turns[0].Seq)
	r.revert(changes.SourceUndo, list, err)
	r.expect("a: 1\n", "b/c: none", "mine: 2\n")
}

// TestLaterEditStays: what the user changed in a file since is not lost.
func TestLaterEditStays(t *testing.T) {
	r := newRecord(t)
	r.write("f", "1\n2\n3\n4\n5\n")
	r.input("go")
	r.call(core.ScopeShell, "sed", func() { r.write("f", "1\nTWO\n3\n4\n5\n"); r.write("g", "1\n") })
	r.write("f", "1\nTWO\n3\n4\nMINE\n")
	r.write("g", "MINE\n")
	list, err := r.history().Last()
	out := r.revert(changes.SourceUndo, list, err)
	r.expect("f: 1\n2\n3\n4\nMINE\n", "g: MINE\n")
	if len(out.Conflicts) != 1 || out.Conflicts[0].Path != filepath.Join(r.root, "g") {
		t.Errorf("conflicts %v", out.Conflicts)
	}
}

// TestEventsOfCalls: an event names what a call changed, and nothing else.
func TestEventsOfCalls(t *testing.T) {
	r := newRecord(t)
	r.write("a", "1\n")
	r.write(".env", "KEY=1\n")
	r.write(".gitignore", "*.log\n")
	r.call(core.ScopeShell, "", func() {
		r.write("a", "1\n2\n")
		r.write(".env", "KEY=2\n")
		r.write("x.log", "noise\n")
		r.write("sub/b", "\x00\x01")
	})
	r.call(core.ScopeShell, "true", func() {})
	r.call(core.ScopeWrite, filepath.Join(r.root, "x.log"), func() { r.write("x.log", "named\n") })
	if len(r.events) != 2 {
		t.Fatalf("%d events: %+v", len(r.events), r.events)
	}
	var got []string
	for _, e := range r.events {
		for _, f := range e.Body.(event.FilesChanged).Files {
			got = append(got, f.Kind+" "+f.Path)
			if strings.Contains(f.Diff, "KEY") {
				t.Errorf("the diff shows a secret: %s", f.Diff)
			}
		}
	}
	if want := "modify a|create sub/b|modify x.log"; strings.Join(got, "|") != want {
		t.Errorf("changes %q, want %s", got, want)
	}
	if d := r.events[0].Body.(event.FilesChanged).Files[0]; d.Added != 1 || d.Removed != 0 || !strings.Contains(d.Diff, "+2\n") {
		t.Errorf("%+v", d)
	}
}

func TestSubagentsAreNotedAtTheRoot(t *testing.T) {
	r := newRecord(t)
	after := r.tr.Before(t.Context(), &core.Call{Session: core.SessionInfo{AgentPath: []string{"helper"}}}, []core.Access{{Scope: core.ScopeShell}})
	r.write("a", "1\n")
	own := after(t.Context())
	if len(own) != 1 || len(r.events) != 1 {
		t.Fatalf("%d events of the subagent, %d of the root", len(own), len(r.events))
	}
	if b := r.events[0].Body.(event.FilesChanged); strings.Join(b.Agent, "/") != "helper" {
		t.Errorf("agent %q", b.Agent)
	}
}

func TestNoSnapshotsIsSaidOnce(t *testing.T) {
	tr := changes.New(changes.Options{Session: "s", Roots: []string{filepath.Join(t.TempDir(), "missing")}, Dir: filepath.Join(t.TempDir(), "snapshots")})
	var bodies []event.Body
	for range 2 {
		bodies = append(bodies, tr.Before(t.Context(), &core.Call{}, []core.Access{{Scope: core.ScopeShell}})(t.Context())...)
	}
	if len(bodies) != 1 || bodies[0].(event.Warning).Code != "SNAPSHOT" {
		t.Errorf("events %+v", bodies)
	}
	if _, err := tr.Revert(t.Context(), nil, changes.RevertOptions{}); err == nil {
		t.Error("an undo without snapshots worked")
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// TestFirstSnapshotBlocksNoEdit: an edit runs, is recorded and can be undone while
// the first snapshot of a large workspace is still being taken. A command waits.
func TestFirstSnapshotBlocksNoEdit(t *testing.T) {
	begun, release := make(chan bool), make(chan bool)
	var once sync.Once
	r := newRecord(t, func(o *changes.Options) {
		o.Secret = func(content []byte) bool {
			if string(content) == "slow" {
				once.Do(func() { close(begun) })
				<-release
			}
			return false
		}
	})
	r.write("slow", "slow")
	r.write(".gitignore", "*.log\n")
	r.write("a", "1\n2\n3\n")
	r.write("sub/gone.log", "x\n")
	r.input("go")
	r.tr.Begin(t.Context())
	<-begun
	r.call(core.ScopeWrite, filepath.Join(r.root, "a"), func() { r.write("a", "1\n2\nTHREE\n") })
	r.call(core.ScopeWrite, filepath.Join(r.root, "new/b"), func() { r.write("new/b", "1\n") })
	r.call(core.ScopeDelete, filepath.Join(r.root, "sub/gone.log"), func() { os.Remove(filepath.Join(r.root, "sub/gone.log")) })
	if n := len(r.history().Turns[0].Changes); n != 3 {
		t.Fatalf("%d changes", n)
	}
	list, err := r.history().Last()
	r.revert(changes.SourceUndo, list, err)
	r.expect("a: 1\n2\n3\n", "new/b: none", "sub/gone.log: x\n")
	list, err = r.history().Undone()
	r.revert(changes.SourceRedo, list, err)
	r.expect("a: 1\n2\nTHREE\n", "new/b: 1\n", "sub/gone.log: none")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.tr.Before(ctx, &core.Call{}, []core.Access{{Scope: core.ScopeShell}})(t.Context()); len(got) > 0 {
		t.Errorf("a command that did not wait has events: %v", got)
	}
	close(release)
	r.call(core.ScopeShell, "", func() { r.write("a", "2\n3\n") })
	list, err = r.history().Last()
	r.revert(changes.SourceUndo, list, err)
	r.expect("a: 1\n2\n3\n", "new/b: none", "sub/gone.log: x\n")
}

// TestLargeRepository: in a repository of 100,000 files that nobody has seen before,
// the first edit does not wait for the first snapshot, and commands are recorded.
func TestLargeRepository(t *testing.T) {
	files := 100_000
	if testing.Short() {
		files = 5_000
	}
	var read atomic.Int64
	r := newRecord(t, func(o *changes.Options) {
		o.Secret = func([]byte) bool { read.Add(1); return false }
	})
	for i := range files {
		if i%50 == 0 {
			r.write(fmt.Sprintf("d%d/s%d/first", i/5000, i/50), "x\n")
		}
		path := filepath.Join(r.root, fmt.Sprintf("d%d/s%d/file%d.go", i/5000, i/50, i))
		if err := os.WriteFile(path, fmt.Appendf(nil, "package p\n\nfunc f%d() {}\n", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.input("go")
	start := time.Now()
	r.tr.Begin(t.Context())
	r.call(core.ScopeWrite, filepath.Join(r.root, "d0/s0/file0.go"), func() { r.write("d0/s0/file0.go", "package q\n") })
	t.Logf("the first edit took %v; %d files were read", time.Since(start), read.Load())
	if n := read.Load(); n >= int64(files) {
		t.Errorf("the edit waited for a snapshot of %d files", n)
	}
	r.call(core.ScopeShell, "", func() {
		r.write("d0/s1/file50.go", "other\n")
		os.RemoveAll(filepath.Join(r.root, "d0/s2"))
	})
	t.Logf("the first command had to wait until %v", time.Since(start))
	start = time.Now()
	r.call(core.ScopeShell, "", func() {})
	t.Logf("a command without changes took %v", time.Since(start))
	if all := r.history().Turns[0].Changes; len(all) != 2 || len(all[1].Files) != 52 {
		t.Fatalf("%d changes", len(all))
	}
	start = time.Now()
	list, err := r.history().Last()
	r.revert(changes.SourceUndo, list, err)
	t.Logf("undo took %v", time.Since(start))
	r.expect("d0/s0/file0.go: package p\n\nfunc f0() {}\n", "d0/s1/first: x\n", "d0/s2/file100.go: package p\n\nfunc f100() {}\n")
}

// TestTooLarge: where the workspace is too large for snapshots, edits are recorded
// all the same.
func TestTooLarge(t *testing.T) {
	r := newRecord(t)
	for i := range 110 { // 1.1 GiB of holes
		r.write(fmt.Sprintf("big%d", i), "")
		if err := os.Truncate(filepath.Join(r.root, fmt.Sprintf("big%d", i)), 10<<20); err != nil {
			t.Fatal(err)
		}
	}
	r.write("a", "1\n")
	r.input("go")
	r.call(core.ScopeShell, "", func() {})
	if w, ok := r.events[1].Body.(event.Warning); !ok || !strings.Contains(w.Message, "too large") {
		t.Fatalf("%+v", r.events)
	}
	r.call(core.ScopeWrite, filepath.Join(r.root, "a"), func() { r.write("a", "2\n") })
	list, err := r.history().Last()
	r.revert(changes.SourceUndo, list, err)
	r.expect("a: 1\n")
}

// TestStoreWorksAgain: a store that cannot be written costs the calls until it can.
func TestStoreWorksAgain(t *testing.T) {
	var dir string
	r := newRecord(t, func(o *changes.Options) { dir = o.Dir })
	r.write("a", "1\n")
	r.input("go")
	r.call(core.ScopeShell, "", func() {})
	objects, err := filepath.Glob(filepath.Join(dir, "*", "objects"))
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	if err := errors.Join(os.Rename(objects[0], objects[0]+".away"), os.WriteFile(objects[0], nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.call(core.ScopeShell, "", func() { r.write("a", "2\n") })
	}
	if w, ok := r.events[1].Body.(event.Warning); !ok || len(r.events) != 2 {
		t.Fatalf("%v: %+v", w, r.events)
	}
	if err := errors.Join(os.Remove(objects[0]), os.Rename(objects[0]+".away", objects[0])); err != nil {
		t.Fatal(err)
	}
	r.call(core.ScopeShell, "", func() { r.write("a", "3\n") })
	list, err := r.history().Last()
	r.revert(changes.SourceUndo, list, err)
	r.expect("a: 2\n")
}

// TestTwoRoots: an undo in several directories is one undo.
func TestTwoRoots(t *testing.T) {
	other := t.TempDir()
	r := newRecord(t, func(o *changes.Options) { o.Roots = append(o.Roots, other) })
	far := filepath.Join(other, "b")
	r.input("go")
	r.call(core.ScopeShell, "", func() {
		r.write("a", "1\n")
		if err := os.WriteFile(far, []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	list, err := r.history().Last()
	r.revert(changes.SourceUndo, list, err)
	if _, err := os.Lstat(far); err == nil {
		t.Error("undone in one directory only")
	}
	r.expect("a: none")
	list, err = r.history().Undone()
	r.revert(changes.SourceRedo, list, err)
	if _, err := os.Lstat(far); err != nil {
		t.Error(err)
	}
	r.expect("a: 1\n")
}

// TestTwoSessions: what an edit of another session changes while a command runs is
// not the command's doing, and its undo leaves it alone.
func TestTwoSessions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	a := newRecord(t, func(o *changes.Options) { o.Session, o.Dir = "a", dir })
	b := newRecord(t, func(o *changes.Options) { o.Session, o.Dir, o.Roots = "b", dir, []string{a.root} })
	b.root = a.root
	for _, name := range []string{"both/one", "both/two", "alone/x", "late", "early"} {
		a.write(name, "old\n")
	}
	a.input("go")
	b.input("go")
	edit := func(name string) {
		b.call(core.ScopeWrite, filepath.Join(b.root, name), func() { b.write(name, "b\n") })
	}
	a.call(core.ScopeShell, "", func() {})
	edit("early")
	a.call(core.ScopeShell, "", func() {
		a.write("both/one", "a\n")
		edit("both/two")
		edit("new/deep/file")
		b.call(core.ScopeDelete, filepath.Join(b.root, "alone/x"), func() { os.RemoveAll(filepath.Join(b.root, "alone")) })
		a.write("early", "a\n")
	})
	edit("late")
	var got []string
	for _, f := range a.history().Turns[0].Changes[0].Files {
		got = append(got, f.Kind+" "+f.Path)
	}
	if want := "modify both/one|modify early"; strings.Join(got, "|") != want {
		t.Errorf("the command changed %q, want %s", got, want)
	}
	list, err := a.history().Last()
	a.revert(changes.SourceUndo, list, err)
	a.expect("both/one: old\n", "both/two: b\n", "new/deep/file: b\n", "alone/x: none", "late: b\n", "early: b\n")
	list, err = b.history().Last()
	b.revert(changes.SourceUndo, list, err)
	b.expect("both/one: old\n", "both/two: old\n", "new/deep/file: none", "alone/x: old\n", "late: old\n", "early: old\n")
}

// TestUndoEverything: whatever tools, commands and the user do at random, undoing
// all turns leaves the first tree, with the user's own files as they are now.
func TestUndoEverything(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := newRecord(t)
	name := func(owner string) string { return fmt.Sprintf("%s/%c/f%d", owner, 'a'+rune(rnd.IntN(3)), rnd.IntN(4)) }
	change := func(owner string) func() {
		return func() {
			for range 1 + rnd.IntN(4) {
				switch at := filepath.Join(r.root, name(owner)); rnd.IntN(5) {
				case 0:
					os.RemoveAll(filepath.Dir(at))
				case 1:
					os.Rename(at, filepath.Join(r.root, name(owner)))
				case 2:
					os.Chmod(at, 0o600)
				default:
					r.write(name(owner), fmt.Sprintf("%s %d\n", owner, rnd.IntN(1000)))
				}
			}
		}
	}
	for range 6 {
		change("agents")()
		change("users")()
	}
	was := r.tree("agents")
	for range 8 {
		r.input("go")
		for range 3 {
			change("users")()
			if edited := name("agents"); rnd.IntN(2) == 0 {
				r.call(core.ScopeWrite, filepath.Join(r.root, edited), func() { r.write(edited, fmt.Sprint(rnd.IntN(1000))) })
			} else {
				r.call(core.ScopeShell, "", change("agents"))
			}
		}
	}
	is, users := r.tree("agents"), r.tree("users")
	for {
		list, err := r.history().Last()
		if errors.Is(err, changes.ErrNothing) {
			break
		}
		if out := r.revert(changes.SourceUndo, list, err); len(out.Conflicts) > 0 {
			t.Fatalf("conflicts %v", out.Conflicts)
		}
	}
	if got := r.tree("agents"); got != was {
		t.Errorf("undone:\n%s\nwant:\n%s", got, was)
	}
	for {
		list, err := r.history().Undone()
		if err != nil {
			break
		}
		r.revert(changes.SourceRedo, list, nil)
	}
	if got := r.tree("agents"); got != is {
		t.Errorf("redone:\n%s\nwant:\n%s", got, is)
	}
	if got := r.tree("users"); got != users {
		t.Errorf("the user's files:\n%s\nwere:\n%s", got, users)
	}
}

// tree describes the files below a directory of the workspace.
func (r *record) tree(dir string) string {
	r.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(filepath.Join(r.root, dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v ", strings.TrimPrefix(path, r.root), info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.Write(data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}
