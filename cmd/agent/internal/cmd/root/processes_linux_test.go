package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// processesIn returns the command lines of the processes that work in a
// directory.
func processesIn(t testing.TB, dir string) []string {
	t.Helper()
	cwds, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(cwds) == 0 {
		t.Skipf("there is no /proc to see processes in: %v", err)
	}
	var found []string
	for _, cwd := range cwds {
		if to, err := os.Readlink(cwd); err != nil || to != dir {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(cwd), "cmdline"))
		if err != nil { // it has ended
			continue
		}
		found = append(found, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))
	}
	return found
}
