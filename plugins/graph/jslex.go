package graph

import (
	"bytes"
	"slices"
	"strings"
)

// jsLexer makes tokens of JavaScript and TypeScript (tc39.es/ecma262, section 12).
type jsLexer struct {
	src    []byte
	tokens []lexeme
	line   int
	fresh  bool
	parens []int  // token before each open (
	braces []byte // '{', or '$' for an expression in a template
	again  bool   // the ) just read ends the head of if, while, for or with
}

func (l *jsLexer) push(kind byte, start, end int) {
	t := lexeme{kind: kind, line: l.line, start: start, end: end, fresh: l.fresh}
	if kind != 'd' && kind != 'r' {
		t.text = string(l.src[start:end])
	}
	l.tokens = append(l.tokens, t)
	l.fresh = false
}

func (l *jsLexer) at(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

func (l *jsLexer) lex() {
	l.line, l.fresh = 1, true
	i := 0
	if bytes.HasPrefix(l.src, []byte("#!")) {
		i = l.comment(0)
	}
	for i < len(l.src) {
		switch c := l.src[i]; {
		case c == '\n':
			l.line, l.fresh, i = l.line+1, true, i+1
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '/' && l.at(i+1) == '/':
			i = l.comment(i)
		case c == '/' && l.at(i+1) == '*':
			i = l.block(i + 2)
		case c == '"' || c == '\'':
			i = l.text(i)
		case c == '`':
			l.push('t', i, i)
			i = l.template(i + 1)
		case c == '/' && l.regexp():
			i = l.pattern(i)
		case c >= '0' && c <= '9':
			start := i
			for i < len(l.src) && (isName(l.src[i]) || l.src[i] == '.' && l.at(i+1) != '.') {
				i++
			}
			l.push('d', start, i)
		case isName(c) || c == '$' || c == '#' || c == '@':
			start := i
			for i++; i < len(l.src) && (isName(l.src[i]) || l.src[i] == '$'); i++ {
			}
			l.push('n', start, i)
		default:
			i = l.operator(i)
		}
	}
}

func (l *jsLexer) comment(i int) int {
	if n := bytes.IndexByte(l.src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(l.src)
}

func (l *jsLexer) block(i int) int {
	end := bytes.Index(l.src[i:], []byte("*/"))
	if end < 0 {
		return len(l.src)
	}
	if n := bytes.Count(l.src[i:i+end], []byte{'\n'}); n > 0 {
		l.line, l.fresh = l.line+n, true
	}
	return i + end + 2
}

func (l *jsLexer) text(i int) int {
	j := i + 1
	for j < len(l.src) && l.src[j] != l.src[i] && l.src[j] != '\n' {
		if l.src[j] == '\\' {
			j++
			if l.at(j) == '\n' {
				l.line++
			}
		}
		j++
	}
	end := min(j, len(l.src))
	l.tokens = append(l.tokens, lexeme{kind: 's', text: string(l.src[i+1 : max(i+1, end)]), line: l.line, start: i, end: min(j+1, len(l.src)), fresh: l.fresh})
	l.fresh = false
	return j + 1
}

// template reads the text of a template up to its end or an expression.
func (l *jsLexer) template(i int) int {
	for i < len(l.src) {
		switch l.src[i] {
		case '\\':
			if l.at(i+1) == '\n' {
				l.line++
			}
			i += 2
		case '\n':
			l.line, i = l.line+1, i+1
		case '`':
			l.push('t', i, i)
			return i + 1
		case '$':
			if l.at(i+1) == '{' {
				l.braces = append(l.braces, '$')
				l.push('o', i, i+2)
				return i + 2
			}
			i++
		default:
			i++
		}
	}
	return i
}

// regexp reports whether a / begins a regular expression.
func (l *jsLexer) regexp() bool {
	if len(l.tokens) == 0 {
		return true
	}
	switch p := l.tokens[len(l.tokens)-1]; p.kind {
	case 'n':
		afterDot := len(l.tokens) > 1 && l.tokens[len(l.tokens)-2].text == "."
		return !afterDot && slices.Contains([]string{"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "yield", "await", "instanceof"}, p.text)
	case 'o':
		switch p.text {
		case ")":
			return l.again
		case "]":
			return false
		case "}":
			return l.fresh
		}
		return true
	}
	return false
}

func (l *jsLexer) pattern(i int) int {
	class := false
	for j := i + 1; j < len(l.src) && l.src[j] != '\n'; j++ {
		switch c := l.src[j]; {
		case c == '\\':
			j++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			for j++; j < len(l.src) && isName(l.src[j]); j++ {
			}
			l.push('r', i, j)
			return j
		}
	}
	l.push('o', i, i+1)
	return i + 1
}

func (l *jsLexer) operator(i int) int {
	switch c := l.src[i]; c {
	case '(':
		l.parens = append(l.parens, len(l.tokens)-1)
	case ')':
		l.again = false
		if n := len(l.parens); n > 0 {
			if p := l.parens[n-1]; p >= 0 && l.tokens[p].kind == 'n' && !(p > 0 && l.tokens[p-1].text == ".") {
				l.again = slices.Contains([]string{"if", "while", "for", "with"}, l.tokens[p].text)
			}
			l.parens = l.parens[:n-1]
		}
	case '{':
		l.braces = append(l.braces, '{')
	case '}':
		if n := len(l.braces); n > 0 {
			open := l.braces[n-1]
			if l.braces = l.braces[:n-1]; open == '$' {
				l.push('o', i, i+1)
				return l.template(i + 1)
			}
		}
	}
	for _, long := range []string{"=>", "...", "?."} {
		if strings.HasPrefix(string(l.src[i:min(i+3, len(l.src))]), long) && !(long == "?." && l.at(i+2) >= '0' && l.at(i+2) <= '9') {
			l.push('o', i, i+len(long))
			if long == "?." {
				l.tokens[len(l.tokens)-1].text = "."
			}
			return i + len(long)
		}
	}
	l.push('o', i, i+1)
	return i + 1
}
