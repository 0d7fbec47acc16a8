package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSpecificationIsCovered checks decision 010 against the source: every
// acceptance criterion has a row, and every test that it names exists.
func TestSpecificationIsCovered(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "decisions", "010-coding-agent-specification.md"))
	if err != nil {
		t.Fatal(err)
	}
	for group, n := range []int{0, 8, 6, 5, 6, 6, 4, 6, 4, 6, 4, 5, 3} {
		for i := 1; i <= n; i++ {
			if id := fmt.Sprintf("AC%d.%d", group, i); !regexp.MustCompile(regexp.QuoteMeta(id) + `\b`).Match(page) {
				t.Errorf("there is no row for %s", id)
			}
		}
	}
	tests := testFunctions(t, root)
	for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9]+|Fuzz[A-Za-z0-9]+)").FindAllSubmatch(page, -1) {
		if !tests[string(name[1])] {
			t.Errorf("there is no %s", name[1])
		}
	}
}

// testFunctions returns the names of all test functions of the module, including
// those of the suites.
func testFunctions(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		src, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(src, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
