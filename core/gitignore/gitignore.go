package gitignore

import (
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core/internal/textedit"
)

// Rule is one line of a .gitignore.
type Rule struct {
	pattern string // behind its literal part
	literal string // what the name must begin with
	plain   string // the name must equal it, if the pattern is a plain name
	suffix  string // the name must end with it, if the pattern is "*" and a text
	name    bool   // match the last element of a path, not the whole path
	dirOnly bool
	negated bool
}

// Parse parses the content of a .gitignore. Invalid patterns match
// nothing, as in git.
func Parse(text string) []Rule {
	var rules []Rule
	for line := range strings.SplitSeq(strings.TrimPrefix(text, textedit.BOM), "\n") {
		if rule, ok := parseLine(strings.TrimSuffix(line, "\r")); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseLine(line string) (Rule, bool) {
	var rule Rule
	if strings.HasPrefix(line, "#") {
		return rule, false
	}
	line = trimSpace(line)
	line, rule.negated = strings.CutPrefix(line, "!")
	line, rule.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return rule, false
	}
	rule.name = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	const special = `*?[\`
	if !strings.ContainsAny(line, special) {
		rule.plain = line
	} else if rest, ok := strings.CutPrefix(line, "*"); ok && rule.name && rest != "" && !strings.ContainsAny(rest, special) {
		rule.suffix = rest
	}
	if wild := strings.IndexAny(line, special); wild > 0 && !rule.name {
		rule.literal, line = line[:wild], line[wild:]
	}
	rule.pattern = line
	return rule, true
}

// trimSpace removes unescaped trailing spaces.
func trimSpace(line string) string {
	trimmed := strings.TrimRight(line, " ")
	slashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if slashes%2 == 1 && len(trimmed) < len(line) {
		return trimmed + " "
	}
	return trimmed
}

// match reports whether the rule matches a slash-separated path, relative to
// the directory of the .gitignore.
func (r Rule) match(rel string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.name {
		rel = path.Base(rel)
	}
	switch {
	case r.plain != "":
		return rel == r.plain
	case r.suffix != "":
		return strings.HasSuffix(rel, r.suffix)
	}
	rest, ok := strings.CutPrefix(rel, r.literal)
	return ok && wildmatch(r.pattern, rest, !r.name)
}

// Level holds the rules of one directory.
type Level struct {
	// Below is the path from the directory of the rules down to the base of the
	// walk, with a trailing slash; within the walk it is empty.
	Below string
	// Dir is the directory of the rules within the walk, with a trailing slash;
	// empty is the base.
	Dir   string
	Rules []Rule
}

// Ignored reports whether a path, relative to the base of the walk, is ignored.
// Levels are ordered from the outermost. The innermost level with a matching
// rule decides, and in it the last such rule.
func Ignored(levels []Level, rel string, dir bool) bool {
	for i := len(levels) - 1; i >= 0; i-- {
		level := levels[i]
		name := level.Below + strings.TrimPrefix(rel, level.Dir)
		for j := len(level.Rules) - 1; j >= 0; j-- {
			if level.Rules[j].match(name, dir) {
				return !level.Rules[j].negated
			}
		}
	}
	return false
}
