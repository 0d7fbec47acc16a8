package plugins_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/plugins"
)

// TestCyclesLeakNothing starts plugins and lets them end in various ways, 200
// times: no process, descriptor, goroutine or file may be left.
func TestCyclesLeakNothing(t *testing.T) {
	cycles := 200
	if testing.Short() {
		cycles = 20
	}
	pl := newPlace(t)
	temp, err := os.MkdirTemp("/tmp", "t") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_RUNTIME_DIR", "")
	pl.link(t, "good", "good:good", nil)
	pl.link(t, "bad", "bad:wrong version", nil)
	cycle := func(i int) {
		h := plugins.Open(t.Context(), pl.options())
		defer func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}()
		list := h.Plugins() // bad, good
		switch i % 4 {
		case 0: // used and closed
			must(t, list[1], "echo", echoArgs{"x"})
		case 1: // crashes and is restarted
			_, _ = call(t, t.Context(), list[1], "misbehave", misbehavior{What: "exit"}, "")
			must(t, list[1], "echo", echoArgs{"x"})
		case 2: // killed
			pid, err := strconv.Atoi(mustPid(t, list[1]))
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGKILL)
			}
			if err != nil {
				t.Error(err)
			}
		case 3: // fails to start
			if _, err := list[0].Tools(t.Context()); err == nil {
				t.Error("a plugin of another version started")
			}
		}
	}
	for i := range 4 { // warm up, such as the supervisor's guard
		cycle(i)
	}
	goroutines, files, left := goleak.IgnoreCurrent(), descriptors(t), temporary(t, temp)
	for i := range cycles {
		cycle(i)
	}
	if err := goleak.Find(goroutines); err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
	if now := descriptors(t); now > files {
		t.Errorf("%d descriptors, %d before", now, files)
	}
	if now := temporary(t, temp); now > left {
		t.Errorf("%d temporary files, %d before", now, left)
	}
	if got := children(t); len(got) > 0 {
		t.Errorf("processes are left: %v", got)
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// temporary counts the temporary files of plugins.
func temporary(t testing.TB, dir string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "agent-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
