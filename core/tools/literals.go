package tools

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// literals are texts of which every match of an expression holds at least one.
// To look for them is far quicker than to match. None means that nothing is
// known.
type literals struct {
	texts []string
	// fold says to look for them without regard to the case of ASCII letters;
	// the texts are in lower case then.
	fold bool
}

// maxLiterals is how many texts are looked for at once.
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
	// In the part that is taken, the case of ASCII letters must be all that
	// varies: K is also the sign of Kelvin, S the long s.
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

// finder returns a function that returns the first place in text from pos on
// where one of the literals is, or -1. Places must be asked for in ascending
// order: each literal is looked for over the text once.
func (l literals) finder(text []byte) func(pos int) int {
	texts := make([][]byte, len(l.texts))
	places := make([]int, len(l.texts)) // of each literal; len(text) if there is no more
	for i, t := range l.texts {
		texts[i], places[i] = []byte(t), -1
	}
	index := bytes.Index
	if l.fold {
		index = indexFold
	}
	return func(pos int) int {
		first := len(text)
		for i := range places {
			if places[i] < pos {
				places[i] = len(text)
				if n := index(text[pos:], texts[i]); n >= 0 {
					places[i] = pos + n
				}
			}
			first = min(first, places[i])
		}
		if first == len(text) {
			return -1
		}
		return first
	}
}

// indexFold is bytes.Index without regard to the case of ASCII letters. The
// part is in lower case and not empty.
func indexFold(text, part []byte) int {
next:
	for i := range len(text) - len(part) + 1 {
		for j, c := range part {
			if lowerByte(text[i+j]) != c {
				continue next
			}
		}
		return i
	}
	return -1
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// lowerASCII puts the ASCII letters of a text in lower case.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return rune(lowerByte(byte(r)))
		}
		return r
	}, text)
}
