package skills

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/core/lazy"
)

// pattern is a trigger that is a regular expression.
type pattern struct {
	re      func() *regexp.Regexp
	written string
	needs   string // lower-case text that every match contains
}

// newPattern makes a pattern, which is compiled when an input has what it needs.
// Parse has validated it.
func newPattern(written string) (pattern, bool) {
	tree, err := syntax.Parse(written, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return pattern{}, false
	}
	return pattern{re: lazy.Regexp(caseless(written)), written: written, needs: needed(tree)}, true
}

// matches reports whether some part of an input matches, an empty one aside.
// Searching for the needed text first makes a thousand patterns affordable.
func (p pattern) matches(in *input) bool {
	return strings.Contains(in.lower, p.needs) && p.re().FindString(in.text) != ""
}

// needed returns the longest text that every match of an expression must
// contain, as far as that is easy to tell. Non-ASCII text is skipped: lower case
// does not fold all of it, such as the long s.
func needed(e *syntax.Regexp) string {
	switch e.Op {
	case syntax.OpLiteral:
		text := strings.ToLower(string(e.Rune))
		if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
			return ""
		}
		return text
	case syntax.OpCapture, syntax.OpPlus:
		return needed(e.Sub[0])
	case syntax.OpConcat:
		longest := ""
		for _, part := range e.Sub {
			if text := needed(part); len(text) > len(longest) {
				longest = text
			}
		}
		return longest
	}
	return ""
}

var escapes = lazy.Regexp(`\\[a-zA-Z]`)

// literals returns the words that are written in regular expressions.
func literals(patterns []string) []string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = escapes().ReplaceAllString(p, " ")
	}
	return out
}
