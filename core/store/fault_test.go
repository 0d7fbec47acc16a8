package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// faultyFile writes half of what it gets and then fails, while faults are on.
type faultyFile struct {
	logFile
	fail, failTruncate bool
	syncs              int
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if !f.fail {
		return f.logFile.WriteAt(p, off)
	}
	n, err := f.logFile.WriteAt(p[:len(p)/2], off)
	return n, errors.Join(err, &fs.PathError{Op: "write", Path: "hidden", Err: syscall.ENOSPC})
}

func (f *faultyFile) Truncate(size int64) error {
	if f.failTruncate {
		return errors.New("no truncating here")
	}
	return f.logFile.Truncate(size)
}

func (f *faultyFile) Sync() error {
	f.syncs++
	return f.logFile.Sync()
}

func faulty(t *testing.T) (*Journal, *faultyFile) {
	t.Helper()
	j, err := Create(t.TempDir(), "s", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	f := &faultyFile{logFile: j.file}
	j.file = f
	return j, f
}

func userEvent(seq int, text string) event.Event {
	return event.Event{
		V: event.Version, Seq: event.Seq(seq), Time: time.Unix(0, 0).UTC(), Session: "s",
		Body: event.User{Content: model.TextParts(text)},
	}
}

func count(t *testing.T, j *Journal) int {
	t.Helper()
	n := 0
	for _, err := range j.Replay(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestFailedWriteIsCutOff(t *testing.T) {
	j, f := faulty(t)
	if err := j.Append(t.Context(), userEvent(1, "a")); err != nil {
		t.Fatal(err)
	}
	f.fail = true
	err := j.Append(t.Context(), userEvent(2, "b"))
	if want := "write session log " + j.path + ": "; !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %sno space left", err, want)
	}
	if info, err := os.Stat(j.path); err != nil || info.Size() != j.size {
		t.Errorf("the half record was left: %v, %v", info.Size(), err)
	}
	f.fail = false
	if err := j.Append(t.Context(), userEvent(3, "c")); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if n := count(t, j); n != 2 {
		t.Errorf("%d records", n)
	}
}

func TestFailedCutEndsAppending(t *testing.T) {
	j, f := faulty(t)
	f.fail, f.failTruncate = true, true
	first := j.Append(t.Context(), userEvent(1, "a"))
	f.fail = false
	second := j.Append(t.Context(), userEvent(2, "b"))
	if first == nil || !errors.Is(second, syscall.ENOSPC) || !strings.Contains(second.Error(), "no truncating here") {
		t.Errorf("got %v, then %v", first, second)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(filepath.Dir(j.path), "s", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Repaired() == nil || count(t, again) != 0 {
		t.Error("the half record was not repaired by the next Open")
	}
}

func TestFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no /dev/full:", err)
	}
	j, f := faulty(t)
	defer f.logFile.Close()
	j.file = full
	if err := j.Append(t.Context(), userEvent(1, "a")); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), j.path) {
		t.Errorf("got %v", err)
	}
}

func TestTooLargeRecords(t *testing.T) {
	j, _ := faulty(t)
	j.maxLine = 200
	if err := j.Append(t.Context(), userEvent(1, strings.Repeat("x", 200))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a record over the limit: %v", err)
	}
	if err := j.Append(t.Context(), userEvent(2, "x")); err != nil || count(t, j) != 1 {
		t.Errorf("the refused record left something: %v", err)
	}
	lines := newLineReader(strings.NewReader(strings.Repeat("x", 100_000) + "\n"))
	lines.limit = 99_999
	if _, err := lines.next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a line over the limit: %v", err)
	}
}

func TestSyncWithNothingNew(t *testing.T) {
	j, f := faulty(t)
	sync := func(want int) {
		t.Helper()
		if err := j.Sync(t.Context()); err != nil || f.syncs != want {
			t.Fatalf("%d syncs of the file, want %d (%v)", f.syncs, want, err)
		}
	}
	sync(0)
	for range 3 {
		if err := j.Append(t.Context(), userEvent(1, "a")); err != nil {
			t.Fatal(err)
		}
	}
	sync(1)
	sync(1)
	if err := j.Append(t.Context(), userEvent(2, "a")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil || f.syncs != 2 {
		t.Errorf("Close synced %d times (%v)", f.syncs, err)
	}
}

func readLine(t *testing.T, j *Journal) string {
	t.Helper()
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(data), "\n")
}
