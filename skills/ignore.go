package skills

import (
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRule is a line of a .gitignore in a place. Those above the place are not
// read: a user's skills may well be untracked.
type ignoreRule struct {
	pattern string // relative to the place
	negated bool
}

// maxIgnore bounds a .gitignore, in bytes.
const maxIgnore = 64 << 10

// readIgnore reads a folder's .gitignore.
func readIgnore(files fs.FS, dir string) []ignoreRule {
	data, err := readFile(files, path.Join(dir, ".gitignore"), maxIgnore)
	if err != nil {
		return nil
	}
	var rules []ignoreRule
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		rest, negated := strings.CutPrefix(line, "!")
		rest = strings.TrimSuffix(rest, "/")
		if !strings.Contains(rest, "/") {
			rest = "**/" + rest
		}
		if pattern := path.Join(dir, strings.TrimPrefix(rest, "/")); doublestar.ValidatePattern(pattern) {
			rules = append(rules, ignoreRule{pattern, negated})
		}
	}
	return rules
}

// ignored reports whether a folder is ignored: the last matching rule decides.
func ignored(rules []ignoreRule, at string) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if doublestar.MatchUnvalidated(rules[i].pattern, at) {
			return !rules[i].negated
		}
	}
	return false
}
