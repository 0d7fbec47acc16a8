package tools

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// literals are texts of which every match of an expression contains at least
// one. Finding them is much faster than matching. Empty means unknown.
type literals struct {
	texts []string
	// fold ignores the case of ASCII letters; the texts are then in lower case.
	fold bool
}

// maxLiterals is the maximum number of texts.
const maxLiterals = 16

// requiredLiterals returns the literals of an expression.
func requiredLiterals(tree *syntax.Regexp) literals {
	switch tree.Op {
	case syntax.OpLiteral:
		return literalOf(tree)
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiterals(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return requiredLiterals(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best literals
		for _, sub := range tree.Sub {
			if l := requiredLiterals(sub); l.shortest() > best.shortest() {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all literals
		for _, sub := range tree.Sub {
			l := requiredLiterals(sub)
			if len(l.texts) == 0 || len(all.texts)+len(l.texts) > maxLiterals {
				return literals{}
			}
			all.texts = append(all.texts, l.texts...)
			all.fold = all.fold || l.fold
		}
		if all.fold {
			for i, text := range all.texts {
				all.texts[i] = lowerASCII(text)
			}
		}
		return all
	}
	return literals{}
}

// literalOf returns the literal of an OpLiteral.
func literalOf(tree *syntax.Regexp) literals {
	if tree.Flags&syntax.FoldCase == 0 {
		if slices.Contains(tree.Rune, utf8.RuneError) { // it matches invalid bytes too
			return literals{}
		}
		return literals{texts: []string{string(tree.Rune)}}
	}
	// Only the case of ASCII letters may vary: k also matches the Kelvin sign, s
	// the long s.
	parts := strings.FieldsFunc(lowerASCII(string(tree.Rune)), func(r rune) bool { return r >= utf8.RuneSelf || r == 'k' || r == 's' })
	if len(parts) == 0 {
		return literals{}
	}
	longest := slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
	return literals{texts: []string{longest}, fold: true}
}

// shortest returns the length of the shortest text, 0 if there is none.
func (l literals) shortest() int {
	if len(l.texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(l.texts, func(a, b string) int { return len(a) - len(b) }))
}

// finder returns a function that returns the first position of any literal in
// text from pos, or -1. Positions must be asked for in ascending order: each
// literal is searched for over the text once.
func (l literals) finder(text []byte) func(pos int) int {
	places := make([]int, len(l.texts)) // of each literal; len(text) if there are no more
	next := make([]func(pos int) int, len(l.texts))
	for i, t := range l.texts {
		places[i], next[i] = -1, exactFinder(text, t)
		if l.fold {
			next[i] = foldFinder(text, t)
		}
	}
	return func(pos int) int {
		first := len(text)
		for i := range places {
			if places[i] < pos {
				places[i] = next[i](pos)
			}
			first = min(first, places[i])
		}
		if first == len(text) {
			return -1
		}
		return first
	}
}

// exactFinder returns a function that returns the first position of part in
// text from pos, or len(text).
func exactFinder(text []byte, part string) func(pos int) int {
	want := []byte(part)
	return func(pos int) int {
		if n := bytes.Index(text[pos:], want); n >= 0 {
			return pos + n
		}
		return len(text)
	}
}

// foldFinder is exactFinder, ignoring the case of ASCII letters; part is in
// lower case and not empty. It jumps between occurrences of the part's rarest
// byte. Positions must be asked for in ascending order.
func foldFinder(text []byte, part string) func(pos int) int {
	rare := 0
	for i := range part {
		if commonness(part[i]) < commonness(part[rare]) {
			rare = i
		}
	}
	lower, upper := part[rare], part[rare]
	if 'a' <= lower && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	nextLower, nextUpper := byteFinder(text, lower), byteFinder(text, upper)
	return func(pos int) int {
		for at := pos + rare; at < len(text); at++ {
			at = min(nextLower(at), nextUpper(at))
			if at+len(part)-rare > len(text) {
				break
			}
			if start := at - rare; equalFold(text[start:start+len(part)], part) {
				return start
			}
		}
		return len(text)
	}
}

// byteFinder is exactFinder for a byte, for positions in ascending order: it
// reads no byte of the text twice.
func byteFinder(text []byte, c byte) func(pos int) int {
	place := -1
	return func(pos int) int {
		if place < pos {
			place = len(text)
			if n := bytes.IndexByte(text[pos:], c); n >= 0 {
				place = pos + n
			}
		}
		return place
	}
}

// equalFold reports whether text equals part, ignoring case; part is in lower
// case.
func equalFold(text []byte, part string) bool {
	for i, c := range text {
		if lowerByte(c) != part[i] {
			return false
		}
	}
	return true
}

// commonness ranks bytes by their rough frequency in texts and programs.
func commonness(c byte) int {
	if n := strings.IndexByte("zjqxkvbywgpfmucdlhrsnioate ", c); n >= 0 {
		return n
	}
	return 10 // digits, signs
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// lowerASCII converts the ASCII letters of a text to lower case.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return rune(lowerByte(byte(r)))
		}
		return r
	}, text)
}
