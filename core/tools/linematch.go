package tools

import (
	"bytes"
	"errors"
	"iter"
	"regexp"
	"regexp/syntax"
	"slices"
)

// lineMatcher finds the lines of a text that match a regular expression, as if
// each line were matched alone.
type lineMatcher struct {
	// core matches in the same lines as re, but not always the same of them.
	core     *syntax.Regexp
	re       *regexp.Regexp
	literals literals // of core
}

var errMultiline = errors.New("it matches a line feed, but lines are searched one by one")

// newLineMatcher compiles a pattern so that no match spans lines.
func newLineMatcher(pattern string, caseInsensitive bool) (*lineMatcher, error) {
	flags := syntax.Perl &^ syntax.OneLine
	if caseInsensitive {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, err
	}
	if err := keepInLine(tree); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, err
	}
	core := trimmed(tree, true, true)
	return &lineMatcher{core: core, re: re, literals: requiredLiterals(core)}, nil
}

// keepInLine changes an expression so that it matches no line feed, and treats
// the ends of lines as the ends of the text.
func keepInLine(tree *syntax.Regexp) error {
	switch tree.Op {
	case syntax.OpBeginText:
		tree.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		tree.Op = syntax.OpEndLine
	case syntax.OpAnyChar:
		tree.Op = syntax.OpAnyCharNotNL
	case syntax.OpLiteral:
		if slices.Contains(tree.Rune, '\n') {
			return errMultiline
		}
	case syntax.OpCharClass:
		tree.Rune = withoutLineFeed(tree.Rune)
		if len(tree.Rune) == 0 {
			return errMultiline
		}
	}
	for _, sub := range tree.Sub {
		if err := keepInLine(sub); err != nil {
			return err
		}
	}
	return nil
}

// withoutLineFeed removes the line feed from a class, a list of ranges.
func withoutLineFeed(class []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(class); i += 2 {
		lo, hi := class[i], class[i+1]
		if lo > '\n' || hi < '\n' {
			out = append(out, lo, hi)
			continue
		}
		if lo < '\n' {
			out = append(out, lo, '\n'-1)
		}
		if hi > '\n' {
			out = append(out, '\n'+1, hi)
		}
	}
	return out
}

// trimmed returns an expression without what may as well be missing where it
// begins or ends, as it may be anywhere in a line: x for .*x+.
func trimmed(tree *syntax.Regexp, begin, end bool) *syntax.Regexp {
	switch tree.Op {
	case syntax.OpCapture:
		return trimmed(tree.Sub[0], begin, end)
	case syntax.OpStar, syntax.OpQuest:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case syntax.OpPlus:
		return trimmed(tree.Sub[0], begin, end)
	case syntax.OpRepeat:
		switch tree.Min {
		case 0:
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		case 1:
			return trimmed(tree.Sub[0], begin, end)
		}
		return &syntax.Regexp{Op: syntax.OpRepeat, Sub: tree.Sub, Min: tree.Min, Max: tree.Min}
	case syntax.OpAlternate:
		either := &syntax.Regexp{Op: syntax.OpAlternate}
		for _, sub := range tree.Sub {
			sub = trimmed(sub, begin, end)
			if sub.Op == syntax.OpEmptyMatch {
				return sub
			}
			either.Sub = append(either.Sub, sub)
		}
		return either
	case syntax.OpConcat:
		return trimmedConcat(slices.Clone(tree.Sub), begin, end)
	}
	return tree
}

func trimmedConcat(parts []*syntax.Regexp, begin, end bool) *syntax.Regexp {
	for begin && len(parts) > 0 {
		parts[0] = trimmed(parts[0], true, end && len(parts) == 1)
		if parts[0].Op != syntax.OpEmptyMatch {
			break
		}
		parts = parts[1:]
	}
	for last := len(parts) - 1; end && last >= 0; last-- {
		parts[last] = trimmed(parts[last], begin && last == 0, true)
		if parts[last].Op != syntax.OpEmptyMatch {
			break
		}
		parts = parts[:last]
	}
	switch len(parts) {
	case 0:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case 1:
		return parts[0]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: parts}
}

// lineMatch is a line that matches.
type lineMatch struct {
	start, end int // the line, without its line break; start is not exact if nobody asks
	at         int // start of the match; that of the line if it is short enough to be shown whole
}

// lineScanner finds the lines of a matcher. It is not safe for concurrent use.
type lineScanner struct {
	*lineMatcher
	dfa    *lineDFA       // nil if there is none
	finder *literalFinder // nil if there are no literals
	// anywhere says that nobody asks where in a line a match is.
	anywhere bool
	// tries counts lines with a literal that were not sure to match, passed the bytes
	// before them. If these are few, it is faster not to look for literals first.
	tries, passed int
	dense         bool
}

func (m *lineMatcher) scanner() *lineScanner {
	s := &lineScanner{lineMatcher: m, dfa: newLineDFA(m.core)}
	if m.literals.shortest() > 0 {
		s.finder = newLiteralFinder(m.literals)
	}
	return s
}

// all yields the matching lines in order.
func (s *lineScanner) all(text []byte) iter.Seq[lineMatch] {
	return func(yield func(lineMatch) bool) {
		next := s.first(text)
		for pos := 0; pos < len(text); {
			at, sure := next(pos)
			// There is no line after the last line feed.
			if at < 0 || at == len(text) && text[len(text)-1] == '\n' {
				return
			}
			found := lineMatch{start: at, end: len(text), at: at}
			if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
				found.end = at + i
			}
			matches := sure && s.anywhere
			if !matches {
				found.start = bytes.LastIndexByte(text[:at], '\n') + 1
				matches = s.confirm(text, &found, sure)
			}
			if matches && !yield(found) {
				return
			}
			pos = found.end + 1
		}
	}
}

// absent reports whether a file has no match, whatever its encoding, as far as that
// can be told from its bytes: in all encodings, a character of ASCII is stored as
// itself, or together with zero bytes.
func (s *lineScanner) absent(file []byte) bool {
	if s.finder == nil || !s.finder.ascii || s.dense {
		return false
	}
	s.finder.reset()
	if s.finder.next(file, 0) >= 0 || bytes.IndexByte(file, 0) >= 0 {
		return false
	}
	s.passed += len(file)
	return true
}

// first returns a function that returns the first position from pos, the start
// of a line, where a match may be, or -1, and whether its line is sure to match.
// Positions must be asked for in ascending order.
func (s *lineScanner) first(text []byte) func(pos int) (at int, sure bool) {
	automaton := s.dfa != nil && !s.dfa.full
	search := func(pos int) (int, bool) {
		if automaton {
			return s.dfa.find(text, pos)
		}
		if loc := s.re.FindIndex(text[pos:]); loc != nil {
			return pos + loc[0], false
		}
		return -1, false
	}
	if s.finder == nil || s.finder.wide && hasWideFold(text) {
		return search
	}
	s.finder.reset()
	switch {
	case s.literals.whole || !automaton:
		return func(pos int) (int, bool) { return s.finder.next(text, pos), s.literals.whole }
	case s.dense:
		return search
	}
	return func(pos int) (int, bool) {
		if s.dense {
			return search(pos)
		}
		at := s.finder.next(text, pos)
		if at < 0 {
			s.passed += len(text) - pos
			return at, false
		}
		const gap = 80 // bytes
		s.passed += at - pos
		s.tries++
		s.dense = (s.tries-16)*gap > s.passed
		return at, false
	}
}

// hasWideFold reports whether a text has the Kelvin sign or the long s: characters
// beyond ASCII that are k and s in another case.
func hasWideFold(text []byte) bool {
	return bytes.Contains(text, []byte("\u212A")) || bytes.Contains(text, []byte("\u017F"))
}

// confirm reports whether a candidate line matches, and sets the position. Sure
// says that it does.
func (s *lineScanner) confirm(text []byte, found *lineMatch, sure bool) bool {
	line := text[found.start:found.end]
	if !sure && s.dfa != nil && len(line) > 0 {
		at, certain := s.dfa.find(line, 0)
		if at < 0 {
			return false
		}
		sure = certain
	}
	if sure && (len(line) <= grepLineChars || s.anywhere) {
		found.at = found.start // package regexp would take much longer to say where
		return true
	}
	loc := s.re.FindIndex(line)
	if loc == nil {
		return false
	}
	found.at = found.start + loc[0]
	return true
}
