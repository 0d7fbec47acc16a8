package store_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

// child starts this test binary in a role and waits until its journal is open.
func child(t *testing.T, role, dir string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, "STORE_TEST_DIR="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()
	})
	out := bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("child says %q (%v)", line, err)
	}
	return cmd, stdin, out
}

func TestLockNamesItsOwner(t *testing.T) {
	dir := t.TempDir()
	cmd, stdin, _ := child(t, "hold", dir)
	_, err := store.Open(dir, "s", store.Options{})
	var locked *store.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, store.ErrLocked) || locked.PID != cmd.Process.Pid || locked.ID != "s" {
		t.Fatalf("got %v, want a LockedError of process %d", err, cmd.Process.Pid)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		t.Fatalf("the lock outlived its process: %v", err)
	}
	j.Close()
}

func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	cmd, _, _ := child(t, "append", dir)
	path := filepath.Join(dir, "s.jsonl")
	for { // let it write something
		if info, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if info.Size() > 20_000 {
			break
		}
		runtime.Gosched()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	got := replay(t, j, 0)
	if len(got) < 100 || got[len(got)-1].Seq != event.Seq(len(got)) {
		t.Errorf("%d records, the last is %d", len(got), got[len(got)-1].Seq)
	}
}

func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the file size limit that simulates a full disk needs Linux")
	}
	dir := t.TempDir()
	cmd, _, out := child(t, "fill", dir)
	output, err := io.ReadAll(out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	path := filepath.Join(dir, "s.jsonl")
	count, message, _ := strings.Cut(string(output), " records, then: ")
	if want := "write session log " + path + ": file too large\n"; message != want {
		t.Errorf("got %q, want %q", message, want)
	}
	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.Repaired() != nil {
		t.Errorf("a partial record was left for the next Open: %+v", j.Repaired())
	}
	if got := replay(t, j, 0); count == "" || len(got) == 0 || strings.TrimSpace(count) != lastSeq(got) {
		t.Errorf("%s records were written, %d are there", count, len(got))
	}
}

func lastSeq(events []event.Event) string {
	return strings.TrimPrefix(events[len(events)-1].ID, "s-")
}

// Goroutines act as processes: the lock belongs to the open file.
func TestLockIsExclusive(t *testing.T) {
	dir := t.TempDir()
	create(t, dir, store.Options{}).Close()
	var holders, opened atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				j, err := store.Open(dir, "s", store.Options{})
				if errors.Is(err, store.ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				opened.Add(1)
				if holders.Add(1) != 1 {
					t.Error("two goroutines hold the lock")
				}
				holders.Add(-1)
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if opened.Load() == 0 {
		t.Error("the lock was never acquired")
	}
	if _, err := os.Stat(filepath.Join(dir, "s.lock")); err == nil && runtime.GOOS != "windows" {
		t.Error("the lock file remains")
	}
}
