package atomicfile_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// childVar names the file that a child process of TestKilledWriter writes.
const childVar = "AGENT_ATOMICFILE_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVar); path != "" {
		writeForever(path)
	}
	os.Exit(m.Run())
}

// writeForever replaces a file again and again and prints a line each time.
func writeForever(path string) {
	for i := 0; ; i++ {
		if err := atomicfile.Write(path, content(i), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// content returns one of ten large texts of a single letter.
func content(i int) []byte { return bytes.Repeat([]byte{'a' + byte(i%10)}, 1<<20) }

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkAlone fails the test if anything but the file is in its directory.
func checkAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("in the directory: %v, %v; want %s only", entries, err, filepath.Base(path))
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for i, perm := range []fs.FileMode{0o600, 0o644, 0o400, 0o600} {
		text := fmt.Sprint(i)
		if err := atomicfile.Write(path, []byte(text), perm); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || read(t, path) != text {
			t.Errorf("after write %d: %q, %v", i, read(t, path), err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != perm {
			t.Errorf("mode %v, want %v", info.Mode().Perm(), perm)
		}
		if runtime.GOOS == "windows" && perm&0o200 == 0 {
			if err := os.Chmod(path, 0o600); err != nil { // a read-only file cannot be replaced there
				t.Fatal(err)
			}
		}
		checkAlone(t, path)
	}
}

func TestFailedWriteKeepsTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := atomicfile.Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := atomicfile.Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("ne")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "old" {
		t.Errorf("before Commit it holds %q", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Commit after Close: %v", err)
	}
	if got := read(t, path); got != "old" {
		t.Errorf("after Close it holds %q", got)
	}
	checkAlone(t, path)
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.MkdirAll(filepath.Join(target, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{target, filepath.Join(dir, "missing", "file")} {
		if err := atomicfile.Write(path, []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), "write "+path) {
			t.Errorf("write to %s: %v", path, err)
		}
	}
	checkAlone(t, target)
	if err := atomicfile.Write(filepath.Join(dir, "missing", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing directory: %v, want fs.ErrNotExist", err)
	}
}

func TestWriteReplacesALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := atomicfile.Write(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || !info.Mode().IsRegular() || read(t, link) != "new" || read(t, target) != "old" {
		t.Errorf("link %v (%v) holds %q, its old target %q", info.Mode(), err, read(t, link), read(t, target))
	}
}

func TestConcurrentWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := atomicfile.Write(path, content(0), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 5 {
				if err := atomicfile.Write(path, content(i), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		checkWhole(t, path)
	}
	writers.Wait()
	checkWhole(t, path)
	checkAlone(t, path)
}

// checkWhole fails the test unless the file holds one of the contents.
func checkWhole(t *testing.T, path string) {
	t.Helper()
	data := []byte(read(t, path))
	if len(data) == 0 || !bytes.Equal(data, bytes.Repeat(data[:1], 1<<20)) {
		t.Errorf("%d bytes of more than one content", len(data))
	}
}

func TestKilledWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childVar+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "3"; {
			checkWhole(t, path)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
		checkWhole(t, path)
	}
}
