package trust_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
)

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// settings creates a directory with settings.
func settings(t *testing.T, text string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, ".agent", "settings.json")
	write(t, file, text)
	return dir, file
}

func check(t *testing.T, s *trust.Store, dir string, want trust.Status) trust.State {
	t.Helper()
	state, err := s.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	if state.Status != want || state.Dir != dir {
		t.Errorf("got %+v, want %s", state, want)
	}
	return state
}

func TestTrust(t *testing.T) {
	home := filepath.Join(t.TempDir(), ".agent")
	s, record := trust.Open(home), filepath.Join(home, "trust.json")
	dir, file := settings(t, "{}")
	other, _ := settings(t, "{}")

	if state := check(t, s, dir, trust.Untrusted); len(state.Files) != 1 || state.Files[0] != ".agent/settings.json" || !strings.Contains(state.Advice(), "run 'agent trust'") {
		t.Errorf("got %+v: %s", state, state.Advice())
	}
	if _, err := os.Stat(record); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a look made a file: %v", err)
	}
	if state, err := s.Trust(t.Context(), dir, testTime); err != nil || state.Status != trust.Trusted {
		t.Fatalf("%+v, %v", state, err)
	}
	if state := check(t, s, dir, trust.Trusted); !state.Since.Equal(testTime) || state.Advice() != "" {
		t.Errorf("got %+v", state)
	}
	check(t, s, other, trust.Untrusted) // the same content elsewhere
	check(t, s, filepath.Join(dir, "sub"), trust.Nothing)

	write(t, file, `{"version": 1}`)
	if state := check(t, s, dir, trust.Changed); len(state.Changes) != 1 || state.Changes[0] != ".agent/settings.json has changed" || !strings.Contains(state.Advice(), ".agent/settings.json has changed since you trusted it on 2026-03-0") {
		t.Errorf("got %+v: %s", state, state.Advice())
	}
	write(t, file, "{}") // trust depends on the content, not the time
	check(t, s, dir, trust.Trusted)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check(t, s, dir, trust.Nothing)
	write(t, file, `{"version": 1}`)
	if _, err := s.Trust(t.Context(), dir, testTime.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	check(t, s, dir, trust.Trusted)

	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Dir != dir || list[0].Status != trust.Trusted || !list[0].Since.Equal(testTime.Add(time.Hour)) {
		t.Errorf("%+v, %v", list, err)
	}
	if found, err := s.Revoke(t.Context(), dir); !found || err != nil {
		t.Errorf("%t, %v", found, err)
	}
	check(t, s, dir, trust.Untrusted)
	if found, err := s.Revoke(t.Context(), dir); found || err != nil {
		t.Errorf("a second time: %t, %v", found, err)
	}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if info, err := os.Stat(record); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestNothingToTrust(t *testing.T) {
	s := trust.Open(filepath.Join(t.TempDir(), ".agent"))
	dir := t.TempDir()
	check(t, s, dir, trust.Nothing)
	if state, err := s.Trust(t.Context(), dir, testTime); err != nil || state.Status != trust.Trusted {
		t.Errorf("%+v, %v", state, err)
	}
	check(t, s, dir, trust.Trusted)
	if err := os.Mkdir(filepath.Join(dir, ".agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".agent", "settings.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if state := check(t, s, dir, trust.Changed); len(state.Changes) != 1 || state.Changes[0] != ".agent/settings.json is new" {
		t.Errorf("%q", state.Changes)
	}
	// The home directory's .agent contains the user's own files.
	home, _ := settings(t, "{}")
	check(t, trust.Open(filepath.Join(home, ".agent")), home, trust.Nothing)
}

func TestWhatCannotBeReadIsNotTrusted(t *testing.T) {
	dir, file := settings(t, "{}")
	home := t.TempDir()
	s, record := trust.Open(home), filepath.Join(home, "trust.json")
	if _, err := s.Trust(t.Context(), dir, testTime); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                "the document is empty",
		"{":                               "trust.json:1:2",
		`{"version": 1, "directory": {}}`: `did you mean "directories"?`,
		strings.Replace(string(whole), `"version": 1`, `"version": 2`, 1): "unsupported version 2",
	} {
		write(t, record, text)
		state, err := s.Check(dir)
		if state.Status != trust.Untrusted || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, state, err)
		}
		if _, err := s.Trust(t.Context(), dir, testTime); err == nil {
			t.Errorf("%q: trusted", text)
		}
		if got, err := os.ReadFile(record); err != nil || string(got) != text {
			t.Errorf("the file holds now %q, %v", got, err)
		}
	}
	write(t, record, string(whole))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if state, err := s.Check(dir); state.Status != trust.Untrusted || err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a directory for a file: %+v, %v", state, err)
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].Status != trust.Untrusted || len(list[0].Changes) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestTrustAtOnce(t *testing.T) {
	s := trust.Open(t.TempDir())
	var all sync.WaitGroup
	const n = 6
	for range n {
		dir, _ := settings(t, "{}")
		all.Go(func() {
			if _, err := s.Trust(t.Context(), dir, testTime); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := s.List(); err != nil || len(list) != n {
		t.Errorf("%d of %d are trusted, %v", len(list), n, err)
	}
}
