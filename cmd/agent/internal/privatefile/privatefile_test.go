package privatefile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
)

func update(t *testing.T, path string, change func([]byte) ([]byte, error)) error {
	t.Helper()
	return privatefile.Update(t.Context(), path, filepath.Join(t.TempDir(), "lock"), change)
}

// always makes a file hold a text.
func always(text string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(text), nil }
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "deep", "file")
	err := update(t, path, func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("a file that is missing holds %q", old)
		}
		return []byte("one"), nil
	})
	if err != nil || read(t, path) != "one" {
		t.Fatalf("%v, %q", err, read(t, path))
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no")
	if err := update(t, path, func([]byte) ([]byte, error) { return []byte("two"), failed }); !errors.Is(err, failed) || read(t, path) != "one" {
		t.Errorf("after a failure it holds %q, %v", read(t, path), err)
	}
	if err := update(t, path, func(old []byte) ([]byte, error) { return append(old, " two"...), nil }); err != nil || read(t, path) != "one two" {
		t.Errorf("%v, %q", err, read(t, path))
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the file: %v, %v", entries, err)
	}
	if runtime.GOOS == "windows" {
		return // it has no permission bits
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestUpdateOfALink: whoever keeps their settings in a repository of their own
// goes on doing so.
func TestUpdateOfALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("this system makes no symbolic links here: %v", err)
	}
	if err := update(t, link, always("two")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 || read(t, target) != "two" {
		t.Errorf("the link is %v, %v; its target holds %q", info.Mode(), err, read(t, target))
	}
}

func TestUpdateRefuses(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, privatefile.MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{large: "is larger than", dir: "is not a regular file"} {
		if err := update(t, path, always("x")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestUpdatesAtOnce: none of them is lost.
func TestUpdatesAtOnce(t *testing.T) {
	dir := t.TempDir()
	path, lock := filepath.Join(dir, "file"), filepath.Join(dir, "lock")
	const writers, each = 8, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				err := privatefile.Update(t.Context(), path, lock, func(old []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(old)) // "" is 0
					return fmt.Append(nil, n+1), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := read(t, path); got != fmt.Sprint(writers*each) {
		t.Errorf("%s updates are left of %d", got, writers*each)
	}
}

func TestUpdateWaitsForTheLock(t *testing.T) {
	dir := t.TempDir()
	path, lock := filepath.Join(dir, "file"), filepath.Join(dir, "lock")
	held := flock.New(lock)
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if err := privatefile.Update(ctx, path, lock, always("x")); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), lock) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was written: %v", err)
	}
}
