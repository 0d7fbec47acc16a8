package permissions

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits that keep matching fast.
const (
	maxPattern      = 2048 // bytes
	maxStars        = 24
	maxAlternatives = 8
)

// glob is a compiled pattern for absolute paths.
type glob struct {
	pattern string
	prefix  string // of every match
	suffix  string // of every match
	literal bool   // the pattern is a path
	tree    string // the pattern is this directory and everything below it
}

// compileGlob compiles an absolute pattern.
func compileGlob(pattern string) (glob, error) {
	for strings.Contains(pattern, "/**/**") {
		pattern = strings.ReplaceAll(pattern, "/**/**", "/**")
	}
	switch {
	case len(pattern) > maxPattern, strings.Count(pattern, "*") > maxStars, strings.Count(pattern, "{") > maxAlternatives:
		return glob{}, fmt.Errorf("the glob is too long or too complex: split it (at most %d bytes, %d *, %d {)",
			maxPattern, maxStars, maxAlternatives)
	case !doublestar.ValidatePattern(pattern):
		return glob{}, errors.New("invalid glob: close every [ and {, and do not end it with \\")
	}
	g := glob{pattern: pattern}
	meta := strings.IndexAny(pattern, `*?[{\`)
	if meta < 0 {
		g.literal, g.prefix = true, pattern
		return g, nil
	}
	g.prefix, g.suffix = pattern[:meta], pattern[strings.LastIndexAny(pattern, `*?]}\`)+1:]
	if strings.Contains(pattern, `\`) { // the suffix could be escaped
		g.suffix = ""
	}
	if pattern[meta:] == "**" && strings.HasSuffix(g.prefix, "/") {
		g.tree = strings.TrimSuffix(g.prefix, "/")
		if g.tree == "" {
			g.tree = "/"
		}
	}
	return g, nil
}

// match reports whether the glob matches the path.
func (g *glob) match(p string) bool {
	switch {
	case g.tree != "":
		return under(p, g.tree)
	case g.literal:
		return p == g.pattern
	}
	return strings.HasPrefix(p, g.prefix) && strings.HasSuffix(p, g.suffix) && doublestar.MatchUnvalidated(g.pattern, p)
}

// top is the path of a literal glob, or the root of its tree.
func (g *glob) top() string {
	if g.tree != "" {
		return g.tree
	}
	return g.pattern
}

// covers reports whether the glob matches a directory and everything below it.
func (g *glob) covers(dir string) bool {
	return g.tree != "" && under(dir, g.tree) || strings.HasSuffix(g.pattern, "/**") && g.match(dir)
}

// meets reports whether the glob may match something in a directory's tree. If
// in doubt, it may.
func (g *glob) meets(dir string) bool {
	if g.match(dir) {
		return true
	}
	if g.literal {
		return under(g.pattern, dir)
	}
	return meetsParts(strings.Split(g.pattern, "/"), strings.Split(strings.TrimSuffix(dir, "/"), "/"))
}

func meetsParts(pattern, dir []string) bool {
	for i, name := range dir {
		switch {
		case i >= len(pattern):
			return false
		case strings.Contains(pattern[i], "**"), strings.ContainsAny(pattern[i], `{}`):
			return true
		}
		if ok, err := path.Match(strings.ReplaceAll(pattern[i], "[!", "[^"), name); err == nil && !ok {
			return false
		}
	}
	return true
}

// escapeGlob returns the pattern that matches exactly the path.
func escapeGlob(p string) string {
	if !strings.ContainsAny(p, `*?[]{}\`) {
		return p
	}
	var b strings.Builder
	for i := range len(p) {
		if strings.IndexByte(`*?[]{}\`, p[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

// anchor has the directories that make relative globs absolute.
type anchor struct {
	bases []string // slashed, absolute
	home  string   // slashed, absolute; empty if unknown
}

// globs compiles the pattern of a rule.
func (a anchor) globs(pattern string, folded bool) ([]glob, error) {
	if hasDrive(pattern) && !isAbs(pattern) || strings.HasPrefix(pattern, `.\`) || strings.HasPrefix(pattern, `\\`) {
		return nil, errors.New(`use forward slashes: C:/work/**`)
	}
	if climbs(pattern) {
		return nil, errors.New("a glob can have .. only at its start: write the resulting path")
	}
	if strings.HasSuffix(pattern, "/") { // a directory stands for its content
		pattern += "**"
	}
	var full []string
	switch {
	case pattern == "~" || strings.HasPrefix(pattern, "~/"):
		if a.home == "" {
			return nil, errors.New("the home directory is unknown: write an absolute path instead of ~")
		}
		full = []string{joinPattern(a.home, pattern[1:])}
	case isAbs(pattern):
		full = []string{joinPattern("", pattern)}
	case len(a.bases) == 0:
		return nil, errors.New("a relative glob needs a project directory: write an absolute path or one below ~")
	default:
		for _, base := range a.bases {
			full = append(full, joinPattern(base, pattern))
		}
	}
	globs := make([]glob, 0, len(full))
	for _, f := range full {
		if folded {
			f = fold(f)
		}
		g, err := compileGlob(f)
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	return globs, nil
}

// joinPattern appends a pattern to a literal directory.
func joinPattern(dir, pattern string) string {
	joined := path.Join(escapeGlob(dir), pattern)
	if strings.HasPrefix(dir, "//") || dir == "" && strings.HasPrefix(pattern, "//") { // \\server\share
		return "/" + joined
	}
	return joined
}

// climbs reports whether a pattern has .. after its start, where the resulting
// path is unknown.
func climbs(pattern string) bool {
	for {
		rest, ok := strings.CutPrefix(pattern, "./")
		if !ok {
			rest, ok = strings.CutPrefix(pattern, "../")
		}
		if !ok {
			break
		}
		pattern = rest
	}
	for part := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return strings.ContainsRune("/{},", r) }) {
		if part == ".." && pattern != ".." {
			return true
		}
	}
	return false
}
