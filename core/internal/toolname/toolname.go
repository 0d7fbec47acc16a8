package toolname

import (
	"slices"
	"strings"
)

// Find returns the one of the names that a model means, which may have the prefix
// or the spelling that some models use: "functions.read_file", "Read-File".
func Find(name string, names []string) (string, bool) {
	name = strings.TrimSpace(name)
	if prefix, rest, ok := strings.Cut(name, "."); ok && slices.Contains([]string{"function", "functions", "tool", "tools", "default_api"}, plain(prefix)) {
		name = rest
	}
	if slices.Contains(names, name) {
		return name, true
	}
	var found []string
	for _, n := range names {
		if plain(n) == plain(name) {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }
