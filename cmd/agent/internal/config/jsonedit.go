package config

import (
	"bytes"
	"encoding/json"
	"strings"
)

// The functions of this file change one value in the text of a JSON document
// and leave the rest as it stands: order, indentation, line ends. The documents
// were parsed before: they are valid, and no key stands twice in an object.

// item is a member of an object or an element of an array: where it stands.
type item struct {
	key               string // of a member
	start, value, end int    // the start of the key, or of the element itself
}

// container is an object or an array.
type container struct {
	open, close int // of the brackets
	items       []item
}

// readContainer reads the container that begins at a place.
func readContainer(doc []byte, at int) container {
	c := container{open: at}
	isObject := doc[at] == '{'
	for at = skipSpace(doc, at+1); doc[at] != '}' && doc[at] != ']'; at = skipSpace(doc, at) {
		if doc[at] == ',' {
			at++
			continue
		}
		it := item{start: at, value: at}
		if isObject {
			end := skipValue(doc, at)
			_ = json.Unmarshal(doc[at:end], &it.key) // it is a string
			it.value = skipSpace(doc, skipSpace(doc, end)+1)
		}
		it.end = skipValue(doc, it.value)
		at = it.end
		c.items = append(c.items, it)
	}
	c.close = at
	return c
}

func (c container) find(key string) (item, bool) {
	for _, it := range c.items {
		if it.key == key {
			return it, true
		}
	}
	return item{}, false
}

func skipSpace(doc []byte, at int) int {
	for at < len(doc) && strings.IndexByte(" \t\r\n", doc[at]) >= 0 {
		at++
	}
	return at
}

// skipValue returns where the value that begins at a place ends.
func skipValue(doc []byte, at int) int {
	depth := 0
	for ; at < len(doc); at++ {
		switch doc[at] {
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case '"':
			for at++; doc[at] != '"'; at++ {
				if doc[at] == '\\' {
					at++
				}
			}
		case ' ', '\t', '\r', '\n', ',', ':':
			continue
		default: // a number or a word
			for at+1 < len(doc) && strings.IndexByte(",:]} \t\r\n", doc[at+1]) < 0 {
				at++
			}
		}
		if depth == 0 {
			return at + 1
		}
	}
	return at
}

// layout is how the lines of a document look.
type layout struct {
	newline string // empty: it stands on one line
	unit    string // of indentation
}

func layoutOf(doc []byte, root container) layout {
	l := layout{newline: "\n", unit: "  "}
	if bytes.Contains(doc, []byte("\r\n")) {
		l.newline = "\r\n"
	}
	if len(root.items) == 0 {
		return l
	}
	indent, broken := indentOf(doc, root.items[0])
	if !broken {
		l.newline = ""
	} else if indent != "" {
		l.unit = indent
	}
	return l
}

// indentOf returns the white space before an item on its line, and whether it
// begins the line.
func indentOf(doc []byte, it item) (string, bool) {
	at := it.start
	for at > 0 && (doc[at-1] == ' ' || doc[at-1] == '\t') {
		at--
	}
	return string(doc[at:it.start]), at > 0 && doc[at-1] == '\n'
}

// lineIndent returns the white space that the line of a place begins with.
func lineIndent(doc []byte, at int) string {
	start := bytes.LastIndexByte(doc[:at], '\n') + 1
	end := start
	for doc[end] == ' ' || doc[end] == '\t' {
		end++
	}
	return string(doc[start:end])
}

// setMember sets the value at a path of keys; objects on the way are made.
func setMember(doc []byte, path []string, value string) []byte {
	at := skipSpace(doc, 0)
	root := readContainer(doc, at)
	look, c := layoutOf(doc, root), root
	for i, key := range path {
		it, ok := c.find(key)
		if !ok {
			return insert(doc, c, look, func(indent string) string {
				return quoteKey(key) + ": " + nested(path[i+1:], value, look, indent)
			})
		}
		if i == len(path)-1 || doc[it.value] != '{' {
			return splice(doc, it.value, it.end, nested(path[i+1:], value, look, lineIndent(doc, it.start)))
		}
		c = readContainer(doc, it.value)
	}
	return doc
}

// nested writes a value inside of objects with these keys.
func nested(path []string, value string, look layout, indent string) string {
	if len(path) == 0 {
		return value
	}
	inner := quoteKey(path[0]) + ": " + nested(path[1:], value, look, indent+look.unit)
	if look.newline == "" {
		return "{" + inner + "}"
	}
	return "{" + look.newline + indent + look.unit + inner + look.newline + indent + "}"
}

// insert puts an item, which is written for an indentation, at the end of a
// container, in the way of those before it.
func insert(doc []byte, c container, look layout, write func(indent string) string) []byte {
	if len(c.items) == 0 {
		indent := lineIndent(doc, c.open)
		if look.newline == "" || doc[c.open] == '[' {
			return splice(doc, c.open+1, c.close, write(indent))
		}
		return splice(doc, c.open+1, c.close, look.newline+indent+look.unit+write(indent+look.unit)+look.newline+indent)
	}
	last := c.items[len(c.items)-1]
	indent, broken := indentOf(doc, last)
	if !broken { // what stands on one line goes on there
		return splice(doc, last.end, last.end, ", "+write(lineIndent(doc, last.start)))
	}
	return splice(doc, last.end, last.end, ","+look.newline+indent+write(indent))
}

// appendElement appends to the array at a path, which is made if there is none.
func appendElement(doc []byte, path []string, value string) []byte {
	c := readContainer(doc, skipSpace(doc, 0))
	look := layoutOf(doc, c)
	for _, key := range path {
		it, ok := c.find(key)
		if !ok || doc[it.value] != '{' && doc[it.value] != '[' { // null
			return setMember(doc, path, "["+value+"]")
		}
		c = readContainer(doc, it.value)
	}
	return insert(doc, c, look, func(string) string { return value })
}

// removeMember removes the value at a path of keys, and the objects that are
// empty without it.
func removeMember(doc []byte, path []string) ([]byte, bool) {
	c := readContainer(doc, skipSpace(doc, 0))
	for i, key := range path {
		at := -1
		for j, it := range c.items {
			if it.key == key {
				at = j
			}
		}
		switch {
		case at < 0:
			return doc, false
		case i < len(path)-1:
			if doc[c.items[at].value] != '{' {
				return doc, false
			}
			c = readContainer(doc, c.items[at].value)
			continue
		case len(c.items) == 1 && i > 0:
			return removeMember(doc, path[:i])
		case len(c.items) == 1:
			return splice(doc, c.open+1, c.close, ""), true
		case at == 0:
			return splice(doc, c.items[0].start, c.items[1].start, ""), true
		default:
			return splice(doc, c.items[at-1].end, c.items[at].end, ""), true
		}
	}
	return doc, false
}

func splice(doc []byte, from, to int, text string) []byte {
	out := make([]byte, 0, len(doc)-(to-from)+len(text))
	return append(append(append(out, doc[:from]...), text...), doc[to:]...)
}

func quoteKey(key string) string { return `"` + key + `"` } // the keys of settings need no escapes
