package sandbox_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// TestTempDirStaysLocked drops a directory whose processes may still run: other
// agents do not take it for that of a killed one.
func TestTempDirStaysLocked(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := func() string {
		dir, err := sandbox.NewTempDir()
		if err != nil {
			t.Fatal(err)
		}
		return dir.Path
	}()
	runtime.GC() // queues the finalizers of files
	runtime.GC()
	for range 100 { // and runs them
		runtime.Gosched()
	}
	sandbox.SweepTempDirs()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the directory in use was removed: %v", err)
	}
}
