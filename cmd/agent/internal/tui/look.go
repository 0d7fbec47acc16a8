package tui

import (
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"

	"github.com/seed-009c0928/agent/cmd/agent/internal/highlight"
)

// Roles are styles whose parameters depend on the theme. They can be combined with
// other styles. The colours of style.go are roles, too: red is that of failures
// and removed lines, green of success and added ones, yellow of what needs
// attention, magenta of headings, cyan of marks and code.
const (
	comment     style = "comment"
	keyword     style = "keyword"
	typeName    style = "type"
	function    style = "function"
	literal     style = "literal"
	number      style = "number"
	name        style = "name"
	addedLine   style = "added"      // background of an added line; may have none
	removedLine style = "removed"    // of a removed one
	addedWord   style = "added-word" // what differs in it
	removedWord style = "removed-word"
)

// theme has the SGR parameters of roles. A style that is missing has its own.
type theme map[style]string

// ansiTheme uses the terminal's own 16 colours, which suit its background.
var ansiTheme = theme{
	comment: "2", keyword: "35", typeName: "36", function: "34", literal: "32", number: "33", name: "36",
	addedLine: "", removedLine: "", addedWord: "7", removedWord: "7",
}

// sgr returns the parameters of a style.
func (t theme) sgr(s style) string {
	if v, ok := t[s]; ok {
		return v
	}
	first, rest, more := strings.Cut(string(s), ";")
	if !more {
		return first
	}
	v, w := t.sgr(style(first)), t.sgr(style(rest))
	if v == "" || w == "" {
		return v + w
	}
	return v + ";" + w
}

// look is what a session's painters have in common.
type look struct {
	named      string // the theme's name
	depth      colorprofile.Profile
	background background
	theme      theme
	code       highlight.Highlighter
}

// tints reports whether changed lines have a background, so that their text can
// have the colours of code.
func (p painter) tints() bool { return p.look != nil && p.look.theme[addedLine] != "" }

// styleOf is the style of a kind of code.
var styleOf = [...]style{
	highlight.Comment: comment, highlight.Keyword: keyword, highlight.Type: typeName, highlight.Function: function, highlight.String: literal,
	highlight.Number: number, highlight.Name: name, highlight.Added: green, highlight.Removed: red, highlight.Heading: magenta,
}

// highlights reports whether code of a language can be highlighted.
func (p painter) highlights(language string) bool {
	return p.colors && p.look != nil && (p.budget == nil || *p.budget > 0) && p.look.code.Known(language)
}

// hurried returns a painter that highlights code for that long at most.
func (p painter) hurried(most time.Duration) painter {
	p.budget = &most
	return p
}

// code returns the lines of code as spans, or nil.
func (p painter) code(language, code string) [][]span {
	if !p.highlights(language) {
		return nil
	}
	begin := time.Now()
	lines := p.look.code.Lines(language, code)
	if p.budget != nil {
		*p.budget -= time.Since(begin)
	}
	if lines == nil {
		return nil
	}
	out := make([][]span, len(lines))
	for i, line := range lines {
		for _, s := range line {
			out[i] = append(out[i], span{s.Text, styleOf[s.Kind]})
		}
	}
	return out
}
