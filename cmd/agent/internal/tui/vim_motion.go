package tui

import (
	"slices"
	"strings"
	"unicode"
)

// target is where a motion leads. The character there belongs to what an operator
// takes if it is included, and the lines between if it goes by lines.
type target struct {
	at              int
	included, lines bool
}

// motion returns where a motion leads from a position.
func (v *vim) motion(text []rune, at int, c vimCommand) (target, bool) {
	start, end := lineStart(text, at), lineEnd(text, at)
	switch c.name {
	case 'h':
		return target{at: max(start, at-c.times())}, true
	case 'l', ' ':
		return target{at: min(end, at+c.times())}, true
	case '0':
		return target{at: start}, true
	case '^', '_':
		return target{at: firstText(text, at)}, true
	case '$':
		return target{at: end}, true
	case 'j', 'k':
		c.count = c.times()
		return target{at: vertical(text, at, c), lines: true}, true
	case 'w', 'b', 'e', 'W', 'B', 'E':
		to := at
		for range c.times() {
			to = wordMotion(text, to, c.name)
		}
		return target{at: to, included: c.name == 'e' || c.name == 'E'}, true
	case 'g':
		if c.detail == 'g' {
			return target{at: nthLine(text, c.times()), lines: true}, true
		}
	case 'G':
		if c.count > 0 {
			return target{at: nthLine(text, c.count), lines: true}, true
		}
		return target{at: lineStart(text, len(text)), lines: true}, true
	case 'f', 'F', 't', 'T':
		v.found = string([]rune{c.name, c.detail})
		return findMotion(text, at, c), true
	case ';', ',':
		if r := []rune(v.found); len(r) == 2 {
			if c.name == ',' {
				r[0] = swapCase(r[0])
			}
			c.name, c.detail = r[0], r[1]
			return findMotion(text, at, c), true
		}
	}
	return target{}, false
}

// span returns what an operator takes.
func (v *vim) span(text []rune, at int, c vimCommand) (from, to int, lines, ok bool) {
	switch {
	case c.name == c.op: // dd, cc, yy
		last := vertical(text, at, vimCommand{name: 'j', count: c.times() - 1})
		return lineStart(text, at), lineEnd(text, last), true, true
	case c.detail != 0 && (c.name == 'i' || c.name == 'a'):
		from, to, ok = textObject(text, at, c)
		return from, to, false, ok
	case c.op == 'c' && (c.name == 'w' || c.name == 'W') && at < len(text) && !unicode.IsSpace(text[at]):
		c.name += 'e' - 'w' // cw leaves the space after the word
	}
	t, ok := v.motion(text, at, c)
	if !ok {
		return 0, 0, false, false
	}
	from, to = min(at, t.at), max(at, t.at)
	switch {
	case t.lines:
		return lineStart(text, from), lineEnd(text, to), true, true
	case t.included:
		to = min(to+1, len(text))
	case (c.name == 'w' || c.name == 'W') && to > lineEnd(text, at) && c.times() == 1:
		to = lineEnd(text, at) // the last word of a line
	}
	return from, to, false, from < to
}

func lineStart(text []rune, at int) int {
	for at > 0 && text[at-1] != '\n' {
		at--
	}
	return at
}

func lineEnd(text []rune, at int) int {
	for at < len(text) && text[at] != '\n' {
		at++
	}
	return at
}

// firstText returns the position of the first character of a line that is no space.
func firstText(text []rune, at int) int {
	from, end := lineStart(text, at), lineEnd(text, at)
	for from < end && unicode.IsSpace(text[from]) {
		from++
	}
	return from
}

// nthLine returns the start of a line, which counts from 1, or of the last one.
func nthLine(text []rune, n int) int {
	return vertical(text, 0, vimCommand{name: 'j', count: n - 1})
}

// vertical returns the position some lines below or above, in the same column.
func vertical(text []rune, at int, c vimCommand) int {
	column := at - lineStart(text, at)
	for range c.count {
		if c.name == 'k' && lineStart(text, at) > 0 {
			at = lineStart(text, at) - 1
		} else if c.name == 'j' && lineEnd(text, at) < len(text) {
			at = lineEnd(text, at) + 1
		}
	}
	return min(lineStart(text, at)+column, lineEnd(text, at))
}

// class tells the words of vim apart: 0 is space.
func class(r rune, big bool) int {
	switch {
	case unicode.IsSpace(r):
		return 0
	case big || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
		return 1
	}
	return 2
}

// wordMotion returns where w, b or e leads.
func wordMotion(text []rune, at int, name rune) int {
	big := unicode.IsUpper(name)
	of := func(i int) int { return class(text[i], big) }
	switch unicode.ToLower(name) {
	case 'w':
		for c := 0; at < len(text); at++ {
			if c = of(at); at+1 >= len(text) || of(at+1) != c {
				at++
				break
			}
		}
		for at < len(text) && of(at) == 0 {
			at++
		}
	case 'b':
		for at > 0 && of(at-1) == 0 {
			at--
		}
		for at > 0 && (at == len(text) || of(at-1) == of(at) || of(at) == 0) && of(at-1) != 0 {
			at--
		}
	case 'e':
		for at++; at < len(text) && of(at) == 0; {
			at++
		}
		for at+1 < len(text) && of(at+1) == of(at) {
			at++
		}
		at = min(at, max(0, len(text)-1))
	}
	return at
}

// findMotion returns where f, F, t or T leads; it stays if the character is not in
// the line.
func findMotion(text []rune, at int, c vimCommand) target {
	step, till := 1, c.name == 't' || c.name == 'T'
	if c.name == 'F' || c.name == 'T' {
		step = -1
	}
	left, to := c.times(), at
	if till && to+step >= 0 && to+step < len(text) && text[to+step] == c.detail {
		to += step // ";" after t
	}
	for to += step; to >= lineStart(text, at) && to < lineEnd(text, at); to += step {
		if text[to] == c.detail {
			if left--; left == 0 {
				if till {
					to -= step
				}
				return target{at: to, included: step > 0}
			}
		}
	}
	return target{at: at}
}

// textObject returns what iw, aw, i", a(, … stand for.
func textObject(text []rune, at int, c vimCommand) (from, to int, ok bool) {
	around := c.name == 'a'
	switch {
	case c.detail == 'w' || c.detail == 'W':
		if at >= len(text) {
			return 0, 0, false
		}
		own := class(text[at], c.detail == 'W')
		for from = at; from > 0 && text[from-1] != '\n' && class(text[from-1], c.detail == 'W') == own; {
			from--
		}
		for to = at; to < len(text) && text[to] != '\n' && class(text[to], c.detail == 'W') == own; {
			to++
		}
		for around && to < len(text) && text[to] == ' ' {
			to++
		}
		return from, to, from < to
	case strings.ContainsRune("\"'`", c.detail):
		from, to, ok = inQuotes(text, at, c.detail)
	default:
		from, to, ok = bracketed(text, at, c.detail)
	}
	if ok && !around {
		from, to = from+1, to-1
	}
	return from, to, ok
}

// inQuotes returns the text in quotes around the cursor, or the next in the line.
func inQuotes(text []rune, at int, quote rune) (from, to int, ok bool) {
	from = -1
	for i := lineStart(text, at); i < lineEnd(text, at); i++ {
		switch {
		case text[i] != quote:
		case from < 0:
			from = i
		case i >= at:
			return from, i + 1, true
		default:
			from = -1
		}
	}
	return 0, 0, false
}

// bracketed returns the text in brackets around the cursor.
func bracketed(text []rune, at int, bracket rune) (from, to int, ok bool) {
	pairs := []string{"()b", "[]", "{}B", "<>"}
	i := slices.IndexFunc(pairs, func(p string) bool { return strings.ContainsRune(p, bracket) })
	if i < 0 || at >= len(text) {
		return 0, 0, false
	}
	opening, closing := rune(pairs[i][0]), rune(pairs[i][1])
	depth := 0
	for from = at; from >= 0; from-- {
		if text[from] == closing && from != at {
			depth++
		} else if text[from] == opening {
			if depth == 0 {
				break
			}
			depth--
		}
	}
	if from < 0 {
		return 0, 0, false
	}
	depth = 0
	for to = from; to < len(text); to++ {
		if text[to] == opening {
			depth++
		} else if text[to] == closing {
			if depth--; depth == 0 {
				return from, to + 1, true
			}
		}
	}
	return 0, 0, false
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}
