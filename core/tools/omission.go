package tools

import (
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/lazy"
)

// omission returns a failure if a text to write has a line that stands for code
// which was left out, such as "// ... rest unchanged", and the file has no such
// line: writing it would lose that code.
func omission(path, text, before string) *core.Result {
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if len(l) > 100 || !placeholder(l) || strings.Contains(before, l) {
			continue
		}
		r := core.Failf(core.CodeValidation, "%s was not changed: the line %q stands for text that was left out, which would be lost. Write the text itself, or only the part that changes.", path, l)
		return &r
	}
	return nil
}

var (
	commentOpen  = lazy.Regexp(`^(//+!?|#+|--|;+|%+|/\*+|\{/\*+|<!--|"""|\*)\s*`)
	commentClose = lazy.Regexp(`\s*(\*+/\}?|-->|""")$`)
	brackets     = lazy.Regexp(`^[(\[<{]+\s*|\s*[)\]>}]+$`)
	dots         = lazy.Regexp(`^(\.{3,}|…)\s*|\s*(\.{3,}|…)$`)
	leftOut      = lazy.Regexp(`^((keep|leave|insert) )?(all )?(of )?(the |your )?((rest|remainder)( of\b.*)?|(remaining|existing|previous|other|original|unchanged|same) (code|file|lines?|content|contents|text|methods?|functions?|imports?|class(es)?|implementation|logic|body|tests?|fields|cases)\b.*)$`)
	sameAsBefore = lazy.Regexp(`^((the |your )?((rest|remainder|remaining|code|file|everything|body|existing)\b.*)?\b(unchanged|(remains?|stays?|is|are) (the same|unchanged|as (it was|before|is))|same as (before|above|original)|as before|omitted( for brevity)?|truncated for brevity))\.?$`)
)

// placeholder reports whether a line only says that something was left out. It
// is a comment, in brackets or after dots; without dots it must also say that
// something is unchanged.
func placeholder(line string) bool {
	text := commentClose().ReplaceAllString(commentOpen().ReplaceAllString(line, ""), "")
	comment := text != line
	inner := brackets().ReplaceAllString(text, "")
	marked := comment || inner != text
	words := strings.ToLower(strings.TrimSpace(dots().ReplaceAllString(dots().ReplaceAllString(inner, ""), "")))
	words = brackets().ReplaceAllString(words, "")
	withDots := dots().MatchString(inner)
	leading := strings.HasPrefix(inner, "...") || strings.HasPrefix(inner, "…")
	switch {
	case withDots && (marked || leading):
		return leftOut().MatchString(words) || sameAsBefore().MatchString(words)
	case comment:
		return sameAsBefore().MatchString(words) && strings.ContainsAny(words, " ") && leftOut().MatchString(words)
	}
	return false
}
