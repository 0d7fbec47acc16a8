package tui

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgramPages unmaps the pages of the program's file: most were used by the
// start alone. The others are mapped again on their next use, from the page cache.
func dropProgramPages() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range unchanged(maps, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED) // an error changes nothing
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchanged returns the mappings of a file that cannot be written and have no page
// that differs from the file, such as one that was relocated: it would be lost.
func unchanged(smaps io.Reader, file string) (out []mapping) {
	var m mapping
	var mode string
	ours := false
	for s := bufio.NewScanner(smaps); s.Scan(); {
		line := s.Text()
		if first, _, _ := strings.Cut(line, " "); !strings.HasSuffix(first, ":") {
			n, _ := fmt.Sscanf(line, "%x-%x %s", &m.from, &m.to, &mode)
			ours = n == 3 && strings.HasSuffix(line, " "+file) && !strings.Contains(mode, "w")
			continue
		}
		if value, ok := strings.CutPrefix(line, "Anonymous:"); ok && ours && strings.TrimSpace(value) == "0 kB" {
			out = append(out, m)
		}
	}
	return out
}
