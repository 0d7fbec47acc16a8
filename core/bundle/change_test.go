package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// steps are those of a change, in order.
var steps = []string{"decide", "place", "between", "enter", "clear"}

// put installs, or updates, a bundle of one file.
func put(ctx context.Context, s *Store, name, body string) error {
	stage, err := s.Stage(ctx)
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(stage.Dir(), "file"), []byte(body), 0o644)
	var tree Tree
	if err == nil {
		tree, err = stage.Tree(ctx)
	}
	if err == nil {
		_, err = stage.Install(ctx, Install{
			Name: name, Tree: tree.Hash, Replace: true,
			Source: Source{Kind: "test", Location: body}, Consent: &Consent{Tree: tree.Hash},
		})
	}
	return errors.Join(err, stage.Close())
}

// operations are the changes that can be interrupted: each begins with "old"
// installed as a, or nothing, and leaves "new" or nothing.
var operations = []struct {
	name     string
	before   string
	run      func(context.Context, *Store) error
	after    string
	exchange bool // whether folders can be exchanged in one step
}{
	{"install", "", func(ctx context.Context, s *Store) error { return put(ctx, s, "a", "new") }, "new", true},
	{"update", "old", func(ctx context.Context, s *Store) error { return put(ctx, s, "a", "new") }, "new", true},
	{"update by two renames", "old", func(ctx context.Context, s *Store) error { return put(ctx, s, "a", "new") }, "new", false},
	{"remove", "old", func(ctx context.Context, s *Store) error { return s.Remove(ctx, "a", false) }, "", true},
}

// openAs opens a store with or without the exchange of folders.
func openAs(dir string, exchanges bool) *Store {
	s := Open(dir, Options{})
	if !exchanges {
		s.exchange = func(string, string) error { return errors.ErrUnsupported }
	}
	return s
}

// victim makes the change of an operation and kills itself at a step.
func victim(dir string) int {
	at := os.Getenv("BUNDLE_TEST_STEP")
	for _, o := range operations {
		if o.name != os.Getenv("BUNDLE_TEST_OPERATION") {
			continue
		}
		s := openAs(dir, o.exchange)
		s.step = func(step string) error {
			if step != at {
				return nil
			}
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			time.Sleep(time.Minute) // the kill comes before
			return err
		}
		if err := o.run(context.Background(), s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	return 2
}

// state returns what is installed as a, by its entry and its files, which must
// agree.
func state(t *testing.T, s *Store) string {
	t.Helper()
	entry, changes, err := s.Verify(t.Context(), "a")
	if errors.Is(err, ErrNotInstalled) {
		if _, err := os.Lstat(s.Path("a")); err == nil {
			t.Error("there is a folder without an entry")
		}
		return ""
	}
	if err != nil || len(changes) > 0 || !entry.Consented() {
		t.Errorf("Verify: %v, %v, consented %v", changes, err, entry.Consented())
	}
	return entry.Source.Location
}

// clean checks that a change left nothing behind.
func clean(t *testing.T, s *Store) {
	t.Helper()
	stage, err := s.Stage(t.Context()) // sweeps
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	var left []string
	entries, err := os.ReadDir(s.inner())
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".gitignore", "lock"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("remaining files: %q, %v; want %q", left, err, want)
	}
}

// TestKill kills a process at each step of each change.
func TestKill(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		for i, step := range steps {
			t.Run(o.name+" at "+step, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if o.before != "" {
					if err := put(t.Context(), Open(dir, Options{}), "a", o.before); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.CommandContext(t.Context(), self)
				cmd.Env = append(os.Environ(), "BUNDLE_TEST_VICTIM="+dir, "BUNDLE_TEST_OPERATION="+o.name, "BUNDLE_TEST_STEP="+step)
				out, err := cmd.CombinedOutput()
				exit := (*exec.ExitError)(nil)
				switch {
				case err == nil && step == "between":
					return // this change has no such step
				case !errors.As(err, &exit) || exit.ExitCode() == 1 || exit.ExitCode() == 2 || len(out) > 0:
					t.Fatalf("the process was not killed: %v\n%s", err, out)
				}
				want := o.after
				if i == 0 {
					want = o.before
				}
				s := openAs(dir, o.exchange)
				if got := state(t, s); got != want {
					t.Errorf("after the kill there is %q, want %q", got, want)
				}
				clean(t, s)
				if err := put(t.Context(), s, "a", "next"); err != nil {
					t.Errorf("the next install: %v", err)
				}
			})
		}
	}
}

// TestFailure lets each step of each change fail: the old state stays.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, o := range operations {
		for _, step := range steps[:4] {
			t.Run(o.name+" at "+step, func(t *testing.T) {
				t.Parallel()
				s := openAs(t.TempDir(), o.exchange)
				if o.before != "" {
					if err := put(t.Context(), s, "a", o.before); err != nil {
						t.Fatal(err)
					}
				}
				full, reached := errors.New("no space left on device"), false
				s.step = func(at string) error {
					if at == step {
						reached = true
						return full
					}
					return nil
				}
				err := o.run(t.Context(), s)
				if !reached {
					return // this change has no such step
				}
				if !errors.Is(err, full) {
					t.Errorf("error %v, want %v", err, full)
				}
				s.step = nil
				if got := state(t, s); got != o.before {
					t.Errorf("after the failure there is %q, want %q", got, o.before)
				}
				clean(t, s)
			})
		}
	}
}

// TestClearedStage completes a change whose files were removed.
func TestClearedStage(t *testing.T) {
	t.Parallel()
	s := openAs(t.TempDir(), false)
	if err := put(t.Context(), s, "a", "old"); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	s.step = func(at string) error {
		if at == "between" { // as a kill would, it leaves all as it is
			panic(stop)
		}
		return nil
	}
	func() {
		defer func() {
			if recover() != stop {
				t.Error("the step was not reached")
			}
		}()
		_ = put(t.Context(), s, "a", "new")
	}()
	s.step = nil
	stages, err := filepath.Glob(filepath.Join(s.inner(), stagePrefix+"*", "content"))
	if err != nil || len(stages) != 1 {
		t.Fatal(stages, err)
	}
	if err := os.RemoveAll(stages[0]); err != nil {
		t.Fatal(err)
	}
	if got := state(t, s); got != "old" {
		t.Errorf("there is %q, want old", got)
	}
}

func TestEditedPending(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{", `{"name":"../x","entry":null}`, `{"name":"a","from":"../../x"}`, `{"name":"a","stage":"../.."}`, `{"name":"a","stage":".."}`,
	} {
		s := Open(t.TempDir(), Options{})
		if err := put(t.Context(), s, "a", "old"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.pendingFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(t.Context()); err == nil || !strings.Contains(err.Error(), "pending.json") {
			t.Errorf("%s: %v; want an error that names the file", text, err)
		}
		if _, err := os.Stat(filepath.Join(s.Path("a"), "file")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestLockIsHeld: waiting for another process ends with the context.
func TestLockIsHeld(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir(), Options{})
	err := s.exclusively(t.Context(), func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		return Open(s.dir, Options{}).Remove(ctx, "a", false)
	})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), filepath.Join(".bundle", "lock")) {
		t.Errorf("error %v, want one about the lock", err)
	}
}
