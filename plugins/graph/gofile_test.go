package graph

import (
	"slices"
	"testing"
)

// TestGoModules: a directory is of the innermost module, whatever the names; and the
// modules come in one order, or each edit would read all again.
func TestGoModules(t *testing.T) {
	files := map[string][]byte{"go.mod": []byte("module example.com/root\n"), "other/readme": nil}
	for _, dir := range []string{"a", "b", "c", "d", "e", "f", "a/b"} {
		files[dir+"/go.mod"] = []byte("module example.com/" + dir + "s // a comment\n")
	}
	first := goModules(files)
	for range 20 {
		if again := goModules(files); !slices.Equal(again, first) {
			t.Fatalf("another order: %v, %v", again, first)
		}
	}
	for dir, want := range map[string]string{".": "root", "a": "as", "a/x": "as/x", "a/b/x": "a/bs/x", "other": "root/other"} {
		if got := importPath(first, dir); got != "example.com/"+want {
			t.Errorf("%s is imported as %s, want %s", dir, got, want)
		}
	}
}
