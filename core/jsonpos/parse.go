package jsonpos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth limits the nesting, and so the parser's recursion.
const maxDepth = 1000

type kind uint8

const (
	object kind = iota
	array
	text
	number
	boolean
	null
)

// describe describes a value, with its text unless that may be secret.
func (n *node) describe(data []byte) string {
	switch n.kind {
	case object:
		return "an object"
	case array:
		return "an array"
	case text:
		return "a string"
	case number:
		return "the number " + excerpt(data[n.start:n.end])
	}
	return string(data[n.start:n.end])
}

// node is a value and its position.
type node struct {
	kind       kind
	start, end int
	comma      int      // offset of the comma after it; 0 = none
	members    []member // of an object, in order
	elems      []*node  // of an array
}

type member struct {
	key      string
	keyStart int
	value    *node
}

// find returns the value at a JSON pointer, or nil.
func (n *node) find(pointer string) *node {
	for pointer != "" {
		rest, ok := strings.CutPrefix(pointer, "/")
		if !ok {
			return nil
		}
		segment := rest
		pointer = ""
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			segment, pointer = rest[:i], rest[i:]
		}
		if n = n.child(unescape(segment)); n == nil {
			return nil
		}
	}
	return n
}

func (n *node) child(key string) *node {
	if n.kind == array {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.elems) && strconv.Itoa(i) == key {
			return n.elems[i]
		}
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// fault is an error whose line is not known yet.
type fault struct {
	offset                 int
	pointer, message, hint string
}

type parser struct {
	data   []byte
	jsonc  bool // comments and trailing commas are allowed
	pos    int
	depth  int
	extras []extra
}

// extra is the range of a comment or a trailing comma.
type extra struct{ start, end int }

// plain returns the data as standard JSON with the same offsets.
func (p *parser) plain() []byte {
	if len(p.extras) == 0 {
		return p.data
	}
	plain := bytes.Clone(p.data)
	for _, e := range p.extras {
		for i := e.start; i < e.end; i++ {
			plain[i] = ' '
		}
	}
	return plain
}

func (p *parser) document() (*node, *fault) {
	p.space()
	if p.pos == len(p.data) {
		return nil, &fault{offset: p.pos, message: "the document is empty", hint: "expected a JSON value, such as {}"}
	}
	n, err := p.value("")
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.data) {
		return nil, p.unexpected("", "nothing after the end of the document")
	}
	return n, nil
}

// space skips white space and, in JSONC, comments.
func (p *parser) space() {
	for p.pos < len(p.data) {
		if strings.IndexByte(" \t\r\n", p.data[p.pos]) >= 0 {
			p.pos++
			continue
		}
		n := 0
		if p.jsonc {
			n = commentLen(p.data[p.pos:])
		}
		if n == 0 {
			return
		}
		p.extras = append(p.extras, extra{p.pos, p.pos + n})
		p.pos += n
	}
}

// commentLen returns the length of the comment that s begins with, without the
// end of its line, or 0 if there is none that ends.
func commentLen(s []byte) int {
	if bytes.HasPrefix(s, []byte("//")) {
		if i := bytes.IndexAny(s, "\r\n"); i >= 0 {
			return i
		}
		return len(s)
	}
	if bytes.HasPrefix(s, []byte("/*")) {
		if i := bytes.Index(s[2:], []byte("*/")); i >= 0 {
			return i + 4
		}
	}
	return 0
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

func (p *parser) value(pointer string) (*node, *fault) {
	switch c := p.peek(); {
	case c == '{' || c == '[':
		if p.depth++; p.depth > maxDepth {
			return nil, &fault{p.pos, pointer, fmt.Sprintf("nested more than %d levels deep", maxDepth), ""}
		}
		defer func() { p.depth-- }()
		if c == '{' {
			return p.object(pointer)
		}
		return p.array(pointer)
	case c == '"':
		start := p.pos
		if _, err := p.string(pointer); err != nil {
			return nil, err
		}
		return &node{kind: text, start: start, end: p.pos}, nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number(pointer)
	}
	n := &node{kind: boolean, start: p.pos}
	switch word := p.word(); word {
	case "null":
		n.kind = null
		fallthrough
	case "true", "false":
		p.pos += len(word)
		n.end = p.pos
		return n, nil
	}
	return nil, p.unexpected(pointer, "a value")
}

func (p *parser) object(pointer string) (*node, *fault) {
	n := &node{kind: object, start: p.pos}
	seen := map[string]bool{}
	p.pos++
	for p.space(); ; p.space() {
		if len(n.members) == 0 && p.peek() == '}' {
			break
		}
		if p.peek() != '"' {
			return nil, p.unexpected(pointer, "a key in double quotes")
		}
		m := member{keyStart: p.pos}
		var err *fault
		if m.key, err = p.string(pointer); err != nil {
			return nil, err
		}
		at := pointer + "/" + escape(m.key)
		if seen[m.key] {
			return nil, &fault{m.keyStart, at, fmt.Sprintf("duplicate key %s", quote(m.key)), "remove one of them"}
		}
		seen[m.key] = true
		if p.space(); p.peek() != ':' {
			return nil, p.unexpected(at, `":" after the key`)
		}
		p.pos++
		p.space()
		if m.value, err = p.value(at); err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
		if more, err := p.separator(pointer, m.value, '}'); err != nil {
			return nil, err
		} else if !more {
			break
		}
	}
	p.pos++
	n.end = p.pos
	return n, nil
}

func (p *parser) array(pointer string) (*node, *fault) {
	n := &node{kind: array, start: p.pos}
	p.pos++
	for p.space(); ; p.space() {
		if len(n.elems) == 0 && p.peek() == ']' {
			break
		}
		elem, err := p.value(pointer + "/" + strconv.Itoa(len(n.elems)))
		if err != nil {
			return nil, err
		}
		n.elems = append(n.elems, elem)
		if more, err := p.separator(pointer, elem, ']'); err != nil {
			return nil, err
		} else if !more {
			break
		}
	}
	p.pos++
	n.end = p.pos
	return n, nil
}

// separator reads the comma after a value, or stops before the closing bracket.
func (p *parser) separator(pointer string, after *node, closing byte) (more bool, err *fault) {
	switch p.space(); p.peek() {
	case ',':
		comma := p.pos
		after.comma = comma
		p.pos++
		if p.space(); p.peek() == closing {
			if p.jsonc {
				p.extras = append(p.extras, extra{comma, comma + 1})
				return false, nil
			}
			return false, &fault{comma, pointer, fmt.Sprintf("trailing comma before the closing %q", string(closing)), "remove it"}
		}
		return true, nil
	case closing:
		return false, nil
	}
	return false, p.unexpected(pointer, fmt.Sprintf(`"," or %q`, string(closing)))
}

// string reads a string and returns its value.
func (p *parser) string(pointer string) (string, *fault) {
	start := p.pos
	escaped := false
	for p.pos++; p.pos < len(p.data); {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			if !escaped {
				return string(p.data[start+1 : p.pos-1]), nil
			}
			var s string
			if err := json.Unmarshal(p.data[start:p.pos], &s); err != nil {
				return "", &fault{start, pointer, "the string cannot be read: " + err.Error(), ""}
			}
			return s, nil
		case c == '\\':
			n := escapeLen(p.data[p.pos:])
			if n == 0 {
				return "", &fault{p.pos, pointer, "invalid escape after a backslash", `write \\ for a backslash itself`}
			}
			escaped = true
			p.pos += n
		case c < ' ':
			if c == '\n' || c == '\r' {
				return "", &fault{start, pointer, "the string does not end on its line", `close it with ", or write \n for a line break`}
			}
			return "", &fault{p.pos, pointer, fmt.Sprintf("control character %U in a string", c), fmt.Sprintf(`write \u%04x`, c)}
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.data[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", &fault{p.pos, pointer, fmt.Sprintf("byte 0x%02x is not valid UTF-8", c), "save the file as UTF-8"}
			}
			p.pos += size
		}
	}
	return "", &fault{start, pointer, "the string does not end", `close it with "`}
}

// escapeLen returns the length of the escape that s begins with, 0 if invalid.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	if s[1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, s[1]) < 0 {
			return 0
		}
		return 2
	}
	if len(s) < 6 {
		return 0
	}
	for _, c := range s[2:6] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return 0
		}
	}
	return 6
}

func (p *parser) number(pointer string) (*node, *fault) {
	word := p.word()
	if !json.Valid([]byte(word)) {
		return nil, &fault{p.pos, pointer, fmt.Sprintf("%s is not a number", excerpt([]byte(word))), "text needs double quotes"}
	}
	p.pos += len(word)
	return &node{kind: number, start: p.pos - len(word), end: p.pos}, nil
}

// word returns the text up to the next delimiter.
func (p *parser) word() string {
	rest := p.data[p.pos:]
	if i := bytes.IndexAny(rest, " \t\r\n,:{}[]\"'"); i >= 0 {
		rest = rest[:i]
	}
	return string(rest)
}

// unexpected is the fault of text other than what was wanted.
func (p *parser) unexpected(pointer, wanted string) *fault {
	f := &fault{offset: p.pos, pointer: pointer}
	if p.pos == len(p.data) {
		f.message = "the document ends here, expected " + wanted
		return f
	}
	found := p.word()
	if found == "" {
		_, size := utf8.DecodeRune(p.data[p.pos:])
		found = string(p.data[p.pos : p.pos+size])
	}
	f.message = fmt.Sprintf("found %s, expected %s", excerpt([]byte(found)), wanted)
	switch comment := strings.HasPrefix(found, "//") || strings.HasPrefix(found, "/*"); {
	case p.jsonc && comment:
		f.hint = "close the comment with */"
	case p.jsonc && strings.HasPrefix(found, "#"):
		f.hint = "a comment begins with //"
	case comment, strings.HasPrefix(found, "#"):
		f.hint = "JSON has no comments"
	case found == "'":
		f.hint = "strings need double quotes"
	}
	return f
}

// excerpt quotes the beginning of a text: enough to find it, too little to
// reveal a misplaced API key.
func excerpt(s []byte) string {
	const limit = 10
	r := []rune(strings.ToValidUTF8(string(s), "\ufffd"))
	if len(r) > limit {
		return quote(string(r[:limit]) + "…")
	}
	return quote(string(r))
}

func quote(s string) string { return strconv.Quote(s) }
