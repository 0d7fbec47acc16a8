package tui

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestGiveBack compares how much of the program's file is in memory before and after.
func TestGiveBack(t *testing.T) { // alone: it looks at the whole process
	before := fileMemory(t)
	giveBack()
	if after := fileMemory(t); after >= before {
		t.Errorf("%d kB of files are in memory, and were before: %d kB", after, before)
	}
}

// fileMemory returns how much of the process's memory is from files, in kB. Those of
// a file system in memory, where the test may be, are counted apart.
func fileMemory(t *testing.T) (sum int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"RssFile:", "RssShmem:"} {
		_, after, ok := strings.Cut(string(status), name)
		if !ok {
			t.Skip("this kernel does not tell file memory apart")
		}
		kB, err := strconv.Atoi(strings.Fields(after)[0])
		if err != nil {
			t.Fatal(err)
		}
		sum += kB
	}
	return sum
}

// TestUnchanged: what a program changed in memory is never dropped.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-01000000 r-xp 00000000 08:01 7                          /usr/bin/agent
Rss:                6000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01000000-02000000 r--p 00c00000 08:01 7                          /usr/bin/agent
Anonymous:             0 kB
02000000-02100000 r--p 01c00000 08:01 7                          /usr/bin/agent
Anonymous:           128 kB
02100000-02200000 rw-p 01d00000 08:01 7                          /usr/bin/agent
Anonymous:             0 kB
c000000000-c000400000 r--p 00000000 00:00 0 
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 08:01 9                  /usr/lib/other/usr/bin/agent
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x1000000}, {0x1000000, 0x2000000}}
	if got := unchanged(strings.NewReader(smaps), "/usr/bin/agent"); !reflect.DeepEqual(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
