package gitignore

import "strings"

// maxSteps bounds the matching of a pattern with many asterisks.
const maxSteps = 100_000

// How a match ended: like wildmatch in git, whose rules these are. An abort
// means that no later start can match either, or only one after a slash.
type outcome uint8

const (
	matched outcome = iota
	mismatch
	abort
	abortToDoubleStar
)

// matcher matches texts byte by byte, as git does.
type matcher struct {
	pattern string
	path    bool // only ** matches a slash
	steps   int
}

// wildmatch reports whether a pattern matches the whole text.
func wildmatch(pattern, text string, path bool) bool {
	m := matcher{pattern: pattern, path: path}
	return m.match(0, text) == matched
}

// Match reports whether a pattern of git's settings matches a path.
func Match(pattern, path string) bool { return wildmatch(pattern, path, true) }

// at returns a byte of the pattern, 0 behind its end.
func (m *matcher) at(i int) byte {
	if i < len(m.pattern) {
		return m.pattern[i]
	}
	return 0
}

func (m *matcher) match(p int, text string) outcome {
	for ; p < len(m.pattern); p++ {
		if m.steps++; m.steps > maxSteps {
			return abort
		}
		c := m.pattern[p]
		if text == "" && c != '*' {
			return abort
		}
		switch c {
		case '*':
			return m.star(p, text)
		case '?':
			if m.path && text[0] == '/' {
				return mismatch
			}
		case '[':
			end, ok, valid := m.set(p+1, text[0])
			if !valid {
				return abort
			}
			if !ok || m.path && text[0] == '/' {
				return mismatch
			}
			p = end
		case '\\':
			p++
			c = m.at(p)
			fallthrough
		default:
			if text[0] != c || p >= len(m.pattern) {
				return mismatch
			}
		}
		text = text[1:]
	}
	if text != "" {
		return mismatch
	}
	return matched
}

// star matches from one or more asterisks on.
func (m *matcher) star(p int, text string) outcome {
	slashes := !m.path
	begin := p
	for p++; m.at(p) == '*'; p++ {
	}
	if m.path && p > begin+1 && (begin == 0 || m.pattern[begin-1] == '/') &&
		(p == len(m.pattern) || m.at(p) == '/' || m.at(p) == '\\' && m.at(p+1) == '/') {
		if m.at(p) == '/' && m.match(p+1, text) == matched {
			return matched // no directory
		}
		slashes = true
	}
	switch {
	case p == len(m.pattern):
		if !slashes && strings.Contains(text, "/") {
			return abortToDoubleStar
		}
		return matched
	case !slashes && m.at(p) == '/':
		slash := strings.IndexByte(text, '/')
		if slash < 0 {
			return abort
		}
		return m.match(p+1, text[slash+1:])
	}
	for ; text != ""; text = text[1:] {
		switch got := m.match(p, text); {
		case got == mismatch:
			if !slashes && text[0] == '/' {
				return abortToDoubleStar
			}
		case !slashes || got != abortToDoubleStar:
			return got
		}
	}
	return abort
}

// set matches one byte with the set that begins at p, behind its bracket. It
// returns where the set ends; one without an end is not valid.
func (m *matcher) set(p int, c byte) (end int, ok, valid bool) {
	negated := m.at(p) == '!' || m.at(p) == '^'
	if negated {
		p++
	}
	var prev byte // the beginning of a range, if there can be one
	for first := true; first || m.at(p) != ']'; first, p = false, p+1 {
		b := m.at(p)
		switch {
		case p >= len(m.pattern):
			return 0, false, false
		case b == '\\':
			p++
			if b = m.at(p); p >= len(m.pattern) {
				return 0, false, false
			}
			ok = ok || b == c
		case b == '-' && prev != 0 && m.at(p+1) != 0 && m.at(p+1) != ']':
			p++
			if b = m.at(p); b == '\\' {
				p++
				if b = m.at(p); p >= len(m.pattern) {
					return 0, false, false
				}
			}
			ok = ok || prev <= c && c <= b
			b = 0
		case b == '[' && m.at(p+1) == ':':
			n := strings.IndexByte(m.pattern[p+2:], ']')
			if n < 0 {
				return 0, false, false
			}
			name, isClass := strings.CutSuffix(m.pattern[p+2:p+2+n], ":")
			if !isClass {
				ok = ok || c == '['
				break
			}
			in, known := class(name, c)
			if !known {
				return 0, false, false
			}
			ok, b = ok || in, 0
			p += 2 + n
		default:
			ok = ok || b == c
		}
		prev = b
	}
	return p, ok != negated, true
}

// class reports whether a byte is in a POSIX class.
func class(name string, c byte) (in, known bool) {
	digit := c >= '0' && c <= '9'
	lower, upper := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return digit || lower || upper, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !digit && !lower && !upper, true
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F', true
	}
	return false, false
}
