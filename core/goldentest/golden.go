package goldentest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

var update = flag.Bool("update", false, "write the golden files")

// Check compares got with a file, named relative to the directory of the
// test's package. If they differ, it reports the difference and the command
// that updates the file; with the flag -update it writes the file. Line breaks
// of the file may be CRLF, as a checkout makes them.
func Check(t testing.TB, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, advice(t))
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(got, want) {
		t.Errorf("%s\n%s", diff.Diff(filepath.ToSlash(file), want, "got", got), advice(t))
	}
}

// advice tells how to update the golden files of a test.
func advice(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("If the change is intended, update the file and review the difference:\n\tgo test %s -run '^%s$' -update", dir(), name)
}

// dir returns the directory of the package, relative to the module's root.
func dir() string {
	here, err := os.Getwd()
	if err != nil {
		return "."
	}
	for root := here; ; {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			rel, _ := filepath.Rel(root, here) // both are absolute
			return "./" + filepath.ToSlash(rel)
		}
		up := filepath.Dir(root)
		if up == root {
			return "."
		}
		root = up
	}
}
