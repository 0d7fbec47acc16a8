package tools

import (
	"cmp"
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
	// whole says that the texts are all that the expression matches.
	whole bool
}

const (
	maxLiterals = 64 // texts
	maxClass    = 4  // characters of a class that become texts
)

// requiredLiterals returns the literals of an expression.
func requiredLiterals(tree *syntax.Regexp) literals {
	switch tree.Op {
	case syntax.OpLiteral:
		return literalOf(tree)
	case syntax.OpCharClass:
		return literalsOfClass(tree.Rune)
	case syntax.OpCapture:
		return requiredLiterals(tree.Sub[0])
	case syntax.OpPlus:
		l := requiredLiterals(tree.Sub[0])
		l.whole = false
		return l
	case syntax.OpRepeat:
		if tree.Min > 0 {
			l := requiredLiterals(tree.Sub[0])
			l.whole = l.whole && tree.Min == 1 && tree.Max == 1
			return l
		}
	case syntax.OpConcat:
		return literalsOfConcat(tree.Sub)
	case syntax.OpAlternate:
		return literalsOfAlternate(tree.Sub)
	}
	return literals{}
}

// literalOf returns the literal of an OpLiteral.
func literalOf(tree *syntax.Regexp) literals {
	if tree.Flags&syntax.FoldCase == 0 {
		if slices.ContainsFunc(tree.Rune, notItself) {
			return literals{}
		}
		return literals{texts: []string{string(tree.Rune)}, whole: true}
	}
	// Only the case of ASCII letters may vary.
	parts := strings.FieldsFunc(lowerASCII(string(tree.Rune)), func(r rune) bool { return r >= utf8.RuneSelf })
	if len(parts) == 0 {
		return literals{}
	}
	longest := slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
	return literals{texts: []string{longest}, fold: true, whole: len(longest) == len(string(tree.Rune))}
}

// notItself reports whether a character of an expression matches other bytes than
// its own: U+FFFD matches those that are invalid, a surrogate none.
func notItself(r rune) bool { return r == utf8.RuneError || !utf8.ValidRune(r) }

// literalsOfClass returns the characters of a small class, a list of ranges.
func literalsOfClass(class []rune) literals {
	l := literals{whole: true}
	for i := 0; i+1 < len(class); i += 2 {
		for r := class[i]; r <= class[i+1]; r++ {
			if len(l.texts) == maxClass || notItself(r) {
				return literals{}
			}
			l.texts = append(l.texts, string(r))
		}
	}
	return l
}

// literalsOfConcat returns the best literals of adjacent parts.
func literalsOfConcat(parts []*syntax.Regexp) literals {
	var best, run literals
	whole := true
	for _, part := range parts {
		switch part.Op {
		case syntax.OpEmptyMatch:
			continue
		case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
			whole = false
			continue
		}
		l := requiredLiterals(part)
		joined, ok := run.then(l)
		if !ok {
			joined, whole = l, whole && len(run.texts) == 0
		}
		if run = joined; run.better(best) {
			best = run
		}
		whole = whole && l.whole
	}
	best.whole = whole && !best.better(run)
	return best
}

// then returns the literals of two adjacent parts as one.
func (l literals) then(next literals) (literals, bool) {
	n := len(l.texts) * len(next.texts)
	if !l.whole || !next.whole || l.fold != next.fold || n == 0 || n > maxLiterals {
		return literals{}, false
	}
	joined := literals{fold: l.fold, whole: true}
	for _, a := range l.texts {
		for _, b := range next.texts {
			joined.texts = append(joined.texts, a+b)
		}
	}
	return joined, true
}

// better reports whether literals occur more rarely than others.
func (l literals) better(than literals) bool {
	const enough = 4 // bytes; beyond, fewer texts are better
	return cmp.Or(
		cmp.Compare(min(l.shortest(), enough), min(than.shortest(), enough)),
		cmp.Compare(len(than.texts), len(l.texts)),
		cmp.Compare(l.shortest(), than.shortest()),
	) > 0
}

func literalsOfAlternate(parts []*syntax.Regexp) literals {
	all := literals{whole: true}
	mixed := false
	for i, part := range parts {
		l := requiredLiterals(part)
		if len(l.texts) == 0 || len(all.texts)+len(l.texts) > maxLiterals {
			return literals{}
		}
		mixed = mixed || i > 0 && l.fold != all.fold
		all.texts = append(all.texts, l.texts...)
		all.fold = all.fold || l.fold
		all.whole = all.whole && l.whole
	}
	if all.fold {
		for i, text := range all.texts {
			all.texts[i] = lowerASCII(text)
		}
	}
	all.whole = all.whole && !mixed
	return all
}

// shortest returns the length of the shortest text, 0 if there is none.
func (l literals) shortest() int {
	if len(l.texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(l.texts, func(a, b string) int { return len(a) - len(b) }))
}

// ascii reports whether all texts are ASCII.
func (l literals) ascii() bool {
	return !slices.ContainsFunc(l.texts, func(t string) bool {
		return strings.ContainsFunc(t, func(r rune) bool { return r >= utf8.RuneSelf })
	})
}

// foldsWide reports whether the literals match characters beyond ASCII: k in any
// case is the Kelvin sign too, s the long s.
func (l literals) foldsWide() bool {
	return l.fold && slices.ContainsFunc(l.texts, func(t string) bool { return strings.ContainsAny(t, "ks") })
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
