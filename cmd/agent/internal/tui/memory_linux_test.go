package tui

import (
	"os"
	"reflect"
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

// fileMemory returns how much of the process's memory is from files, in kB.
func fileMemory(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(status), "RssFile:")
	if !ok {
		t.Skip("this kernel does not tell file memory apart")
	}
	for _, c := range strings.TrimSpace(after) {
		if c < '0' || c > '9' {
			break
		}
		kB = 10*kB + int(c-'0')
	}
	return kB
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
