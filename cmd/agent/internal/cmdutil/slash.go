package cmdutil

import (
	"strings"
)

// CutCommand takes a prompt that begins with a command apart.
func CutCommand(prompt string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(prompt, "/")
	if i := strings.IndexAny(rest, " \n"); i >= 0 {
		rest, args = rest[:i], strings.TrimSpace(rest[i+1:])
	}
	return rest, args, ok
}
