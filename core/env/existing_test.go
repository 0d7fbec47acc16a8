package env_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/env"
)

// TestExisting compares with a look at each path, for directories that are listed
// and those that are not.
func TestExisting(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{".ssh/id", ".Aws", "Änderung", "many/a.key", "many/b.key", "many/c.txt"} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plain := []string{".ssh", ".aws", ".Aws", ".gnupg", "Änderung", "missing/1", "missing/2", "missing/3", "missing/4", ".ssh/id", ".ssh/id/below", "many/c.txt"}
	for i := range 40 { // so many that directories are listed
		plain = append(plain, fmt.Sprint("missing", i), fmt.Sprint("many/missing", i))
	}
	for _, few := range [][]string{plain, plain[:2], plain[4:5], plain[9:10]} {
		var paths, want []string
		for _, name := range few {
			path := filepath.Join(home, name)
			paths = append(paths, path)
			if _, err := os.Lstat(path); err == nil {
				want = append(want, path)
			}
		}
		slices.Sort(want)
		if got := env.Existing(paths); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want := []string{filepath.Join(home, "many", "a.key"), filepath.Join(home, "many", "b.key")}
	got := env.Existing([]string{filepath.Join(home, "many", "*.key"), filepath.Join(home, "none", "*"), filepath.Join(home, "[")})
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
