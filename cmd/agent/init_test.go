package main_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Every command pays for what packages do before main: this module's together
// allocate 181 kB, those of all packages 2.8 MB.
const (
	allBytes     = 3 << 20
	initBytes    = 256 << 10
	packageBytes = 64 << 10
)

// TestPackageInits runs this program again, which links the whole command, with
// the runtime's traces of package inits and of garbage collections. An expression
// that is compiled before main is made with core/lazy, a table on first use, and
// nothing is collected yet.
func TestPackageInits(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1,gctrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	packages, sum, all := 0, 0, 0
	for line := range strings.Lines(string(trace)) {
		// init PACKAGE @START ms, DURATION ms clock, BYTES bytes, COUNT allocs
		f := strings.Fields(line)
		if len(f) > 0 && f[0] == "gc" {
			t.Errorf("a garbage collection before the first command, see cmd/agent/internal/prelude: %s", line)
		}
		if len(f) < 9 || f[0] != "init" {
			continue
		}
		bytes, err := strconv.Atoi(f[7])
		if err != nil {
			t.Fatalf("line of the trace: %s", line)
		}
		all += bytes
		if !strings.HasPrefix(f[1], modulePath) || strings.HasSuffix(f[1], "_test") {
			continue
		}
		if bytes > packageBytes {
			t.Errorf("the init of %s allocates %d bytes of at most %d", f[1], bytes, packageBytes)
		}
		packages++
		sum += bytes
	}
	t.Logf("%d packages, %d bytes, with others %d bytes", packages, sum, all)
	if packages < 10 || sum > initBytes {
		t.Errorf("the inits of %d packages allocate %d bytes of at most %d", packages, sum, initBytes)
	}
	if all > allBytes {
		t.Errorf("the inits of all packages allocate %d bytes of at most %d: does a new dependency need that before main?", all, allBytes)
	}
}
