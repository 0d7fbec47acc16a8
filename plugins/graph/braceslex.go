package graph

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// lexBraces makes tokens of Java, Rust, C or C++. Of the directives of C's
// preprocessor only #include remains, as the tokens # include "NAME".
func lexBraces(language string, src []byte) []lexeme {
	l := &jsLexer{src: src, tokens: make([]lexeme, 0, len(src)/4), line: 1, fresh: true}
	rust, c := language == "rust", language == "c"
	for i := 0; i < len(src); {
		switch ch := src[i]; {
		case ch == '\n':
			l.line, l.fresh, i = l.line+1, true, i+1
		case ch == ' ' || ch == '\t' || ch == '\r' || ch == '\f':
			i++
		case ch == '/' && l.at(i+1) == '/':
			i = l.comment(i)
		case ch == '/' && l.at(i+1) == '*' && rust:
			i = l.nested(i)
		case ch == '/' && l.at(i+1) == '*':
			i = l.block(i + 2)
		case ch == '#' && c && l.fresh:
			i = l.directive(i)
		case bytes.HasPrefix(src[i:], []byte(`"""`)) && language == "java":
			end := bytes.Index(src[i+3:], []byte(`"""`))
			if end < 0 {
				return l.tokens
			}
			l.line += bytes.Count(src[i:i+end], []byte{'\n'})
			i += end + 6
		case ch == 'r' && rust && (l.at(i+1) == '"' || l.at(i+1) == '#' && (l.at(i+2) == '"' || l.at(i+2) == '#')):
			i = l.raw(i + 1)
		case ch == 'R' && c && l.at(i+1) == '"':
			i = l.rawC(i + 2)
		case ch == 'r' && rust && l.at(i+1) == '#' && isName(l.at(i+2)):
			i += 2 // a name that is also a keyword
		case ch == '\'' && rust && l.at(i+1) != '\\':
			i = l.character(i + 1)
		case ch == '"' && rust:
			i = l.multiline(i)
		case ch == '"' || ch == '\'':
			i = l.text(i)
		case ch >= '0' && ch <= '9':
			start := i
			for i < len(src) && (isName(src[i]) || src[i] == '.' && l.at(i+1) >= '0' && l.at(i+1) <= '9' || src[i] == '\'' && c) {
				i++
			}
			l.push('d', start, i)
		case isName(ch) || ch == '$':
			start := i
			for i < len(src) && (isName(src[i]) || src[i] == '$') {
				i++
			}
			l.push('n', start, i)
		default:
			n := 1
			if two := string(src[i:min(i+2, len(src))]); two == "::" || two == "->" || two == "=>" {
				n = 2
			}
			l.push('o', i, i+n)
			i += n
		}
	}
	return l.tokens
}

// character skips a character of Rust or a lifetime, from behind its quote.
func (l *jsLexer) character(i int) int {
	if _, n := utf8.DecodeRune(l.src[i:]); l.at(i+n) == '\'' {
		return i + n + 1
	}
	for i < len(l.src) && isName(l.src[i]) {
		i++
	}
	return i
}

// nested skips a comment of Rust, which may contain others.
func (l *jsLexer) nested(i int) int {
	depth := 0
	for i < len(l.src) {
		switch {
		case l.src[i] == '/' && l.at(i+1) == '*':
			depth++
			i++
		case l.src[i] == '*' && l.at(i+1) == '/':
			depth--
			i++
		case l.src[i] == '\n':
			l.line++
		}
		if i++; depth == 0 {
			break
		}
	}
	return i
}

// raw skips a raw string of Rust, from its # or quote.
func (l *jsLexer) raw(i int) int {
	hashes := 0
	for l.at(i) == '#' {
		hashes, i = hashes+1, i+1
	}
	return l.until(i+1, `"`+strings.Repeat("#", hashes))
}

// rawC skips a raw string of C++, from behind its quote.
func (l *jsLexer) rawC(i int) int {
	open := bytes.IndexByte(l.src[i:], '(')
	if open < 0 || open > 16 {
		return i
	}
	return l.until(i+open, ")"+string(l.src[i:i+open])+`"`)
}

func (l *jsLexer) until(i int, end string) int {
	i = min(i, len(l.src))
	n := bytes.Index(l.src[i:], []byte(end))
	if n < 0 {
		return len(l.src)
	}
	l.line += bytes.Count(l.src[i:i+n], []byte{'\n'})
	return i + n + len(end)
}

// multiline skips a string that may have several lines.
func (l *jsLexer) multiline(i int) int {
	for i++; i < len(l.src) && l.src[i] != '"'; i++ {
		if l.src[i] == '\\' {
			i++
		}
		if l.at(i) == '\n' {
			l.line++
		}
	}
	return i + 1
}

// directive skips a line of the preprocessor, with those that continue it.
func (l *jsLexer) directive(i int) int {
	end := i
	for end < len(l.src) && l.src[end] != '\n' {
		if l.src[end] == '\\' && (l.at(end+1) == '\n' || l.at(end+1) == '\r') {
			end++
			if l.at(end) == '\r' {
				end++
			}
			l.line++
		}
		end++
	}
	end = min(end, len(l.src))
	if rest, ok := bytes.CutPrefix(bytes.TrimSpace(l.src[i+1:end]), []byte("include")); ok {
		if name := strings.Trim(strings.TrimSpace(string(rest)), `"<>`); name != "" {
			l.tokens = append(l.tokens, lexeme{kind: 's', text: "#" + name, line: l.line, start: i, end: end, fresh: true})
		}
	}
	return end
}
