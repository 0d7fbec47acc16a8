//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSweepTempDirs: what a killed agent left is removed, in every place for
// temporary files; what a running one uses is not, nor is anything else.
func TestSweepTempDirs(t *testing.T) {
	runtimeDir, temp := t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	t.Setenv("TMPDIR", temp)
	used, err := NewTempDirIn(runtimeDir)
	if err != nil {
		t.Fatal(err)
	}
	defer used.Remove()
	other := filepath.Join(temp, "other-1")
	left := []string{filepath.Join(runtimeDir, tempPrefix+"1"), filepath.Join(temp, tempPrefix+"2")}
	for _, dir := range append(left, other) {
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	SweepTempDirs()
	for _, dir := range left {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	for _, dir := range []string{used.Path, other} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s is gone", dir)
		}
	}
}

// TestRemoveTwice: a second call closes nothing that has been opened since.
func TestRemoveTwice(t *testing.T) {
	dir, err := NewTempDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	var files []*os.File // one of them has the descriptor of the lock
	for range 20 {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if _, err := f.WriteString("x"); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
