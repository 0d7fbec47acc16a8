package sandbox

import (
	"fmt"
	"os"
	"strings"
)

// Listens reports whether a server on this machine listens on a TCP port of the
// loopback interface or of all.
func Listens(port int) bool {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // IPv6 may be disabled
		}
		local, listening := fmt.Sprintf(":%04X", port), "0A"
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 3 && strings.HasSuffix(fields[1], local) && fields[3] == listening {
				return true
			}
		}
	}
	return false
}
