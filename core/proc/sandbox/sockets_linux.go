package sandbox

import (
	"bufio"
	"os"
	"slices"
	"strings"
)

// hideSockets masks the visible Unix sockets of running servers: docker's, a
// password manager's, an SSH agent's, also those in writable directories, unless they
// were granted themselves. Sockets created later are not hidden.
func (l *layout) hideSockets() {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return // the sockets are unknown
	}
	defer f.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		at := strings.Index(lines.Text(), " /")
		if at < 0 {
			continue
		}
		path := lines.Text()[at+1:]
		if seen[path] || isReplaced(path) && !l.sees(path) {
			continue
		}
		seen[path] = true
		resolved, info, ok := existing(path)
		if ok && info.Mode()&os.ModeSocket != 0 && !slices.Contains(l.writable, resolved) {
			l.masked = append(l.masked, mask{path: resolved})
		}
	}
}
