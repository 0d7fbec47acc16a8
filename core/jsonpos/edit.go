package jsonpos

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Set returns the text of the document with the value at a path of keys, and
// indexes of existing elements, set to a JSON text. What is neither on the way
// becomes an object. Everything else stays
// as it was written: order, indentation, line ends, comments.
func (d *Document) Set(path []string, value string) []byte {
	n := d.root
	for i, key := range path {
		child := n.child(key)
		if n.kind != object && child == nil {
			return d.replace(n, path[i:], value)
		}
		if child == nil {
			return d.insert(n, func(indent string) string {
				return quoteKey(key) + ": " + d.nested(path[i+1:], value, indent)
			})
		}
		n = child
	}
	return d.replace(n, nil, value)
}

func (d *Document) replace(n *node, path []string, value string) []byte {
	return d.apply(edit{n.start, n.end, d.nested(path, value, d.indentAt(n.start))})
}

// Append is Set with an array that has one more element; one that is missing is
// made.
func (d *Document) Append(path []string, value string) []byte {
	n := d.root
	for i := 0; i < len(path) && n != nil; i++ {
		n = n.child(path[i])
	}
	if n == nil || n.kind != array {
		return d.Set(path, "["+value+"]")
	}
	return d.insert(n, func(string) string { return value })
}

// Remove returns the text of the document without the value at a path of keys
// and indexes, and without what is empty then. The comment behind the value on
// its line goes with it; all others stay. It reports whether there was a value.
func (d *Document) Remove(path ...string) (text []byte, removed bool) {
	if len(path) == 0 {
		return d.data, false
	}
	nodes := []*node{d.root}
	for i, key := range path {
		child := nodes[i].child(key)
		if child == nil {
			return d.data, false
		}
		nodes = append(nodes, child)
	}
	last := len(path) - 1
	for last > 0 && d.hasOneItem(nodes[last]) {
		last--
	}
	parent := nodes[last]
	if d.hasOneItem(parent) {
		return d.apply(edit{parent.start + 1, parent.end - 1, ""}), true
	}
	items := parent.items()
	at := slices.IndexFunc(items, func(it item) bool { return it.end == nodes[last+1].end })
	return d.apply(d.removal(items, at)...), true
}

// removal returns the edits that remove one of several items or comments.
func (d *Document) removal(items []item, at int) []edit {
	it := items[at]
	start, end := it.start, d.endOf(it)
	var edits []edit
	if at == len(items)-1 && at > 0 {
		prev := items[at-1]
		if it.comma == 0 {
			edits = append(edits, edit{prev.comma, prev.comma + 1, ""})
		}
		if blank(d.data[prev.comma+1 : start]) {
			return append(edits, edit{prev.comma + 1, end, ""})
		}
	}
	rest := d.data[end:]
	line, _, found := bytes.Cut(rest, []byte("\n"))
	switch {
	case d.beginsLine(start) && found && blank(line):
		start -= len(d.indentAt(start))
		end += len(line) + 1
	case at < len(items)-1:
		end += len(rest) - len(bytes.TrimLeft(rest, whiteSpace))
	}
	return append(edits, edit{start, end, ""})
}

// hasOneItem reports whether there is nothing but one item in a container, not
// even a comment.
func (d *Document) hasOneItem(n *node) bool {
	items := n.items()
	return len(items) == 1 && blank(d.data[n.start+1:items[0].start]) && blank(d.data[d.endOf(items[0]):n.end-1])
}

// item is a member of an object or an element of an array.
type item struct{ start, end, comma int }

func (n *node) items() []item {
	var items []item
	for _, m := range n.members {
		items = append(items, item{m.keyStart, m.value.end, m.value.comma})
	}
	for _, e := range n.elems {
		items = append(items, item{e.start, e.end, e.comma})
	}
	return items
}

// endOf returns where an item ends with its comma and the comments that end its
// line.
func (d *Document) endOf(it item) int {
	end := max(it.end, it.comma+1)
	for at := end; ; {
		rest := bytes.TrimLeft(d.data[at:], " \t")
		if len(rest) == 0 || rest[0] == '\r' || rest[0] == '\n' {
			return at
		}
		n := commentLen(rest)
		if n == 0 || bytes.IndexByte(rest[:n], '\n') >= 0 {
			return end
		}
		at = len(d.data) - len(rest) + n
	}
}

// insert puts an item, which is written for an indentation, at the end of a
// container, in the way of those before it.
func (d *Document) insert(n *node, write func(indent string) string) []byte {
	items := n.items()
	if len(items) == 0 {
		return d.fill(n, write)
	}
	last := items[len(items)-1]
	at, gap, comma := last.end, " ", ""
	indent := d.indentAt(last.start)
	if d.beginsLine(last.start) {
		at, gap = d.endOf(last), d.newline()+indent
	}
	var edits []edit
	if last.comma > 0 {
		at, comma = max(at, last.comma+1), ","
	} else {
		edits = append(edits, edit{last.end, last.end, ","})
	}
	return d.apply(append(edits, edit{at, at, gap + write(indent) + comma})...)
}

// fill puts an item into an empty container, below its comments.
func (d *Document) fill(n *node, write func(indent string) string) []byte {
	inner := bytes.TrimRight(d.data[n.start+1:n.end-1], whiteSpace)
	at, indent := n.start+1+len(inner), d.indentAt(n.start)
	text := write(indent)
	if len(inner) > 0 || n.kind == object && !d.onOneLine() {
		deeper := indent + d.unit()
		text = d.newline() + deeper + write(deeper) + d.newline() + indent
	}
	return d.apply(edit{at, n.end - 1, text})
}

// nested writes a value inside of objects with these keys.
func (d *Document) nested(path []string, value, indent string) string {
	if len(path) == 0 {
		return value
	}
	deeper := indent + d.unit()
	inner := quoteKey(path[0]) + ": " + d.nested(path[1:], value, deeper)
	if d.onOneLine() {
		return "{" + inner + "}"
	}
	return "{" + d.newline() + deeper + inner + d.newline() + indent + "}"
}

// onOneLine reports whether the document's first item is on the line of its
// bracket.
func (d *Document) onOneLine() bool {
	items := d.root.items()
	return len(items) > 0 && !d.beginsLine(items[0].start)
}

// unit returns the indentation of one level.
func (d *Document) unit() string {
	if items := d.root.items(); len(items) > 0 && d.beginsLine(items[0].start) {
		if indent := d.indentAt(items[0].start); indent != "" {
			return indent
		}
	}
	return "  "
}

func (d *Document) newline() string {
	if bytes.Contains(d.data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// beginsLine reports whether only white space precedes an offset on its line,
// which is not the first.
func (d *Document) beginsLine(at int) bool {
	before := bytes.TrimRight(d.data[:at], " \t")
	return bytes.HasSuffix(before, []byte("\n"))
}

// indentAt returns the white space that the line of an offset begins with.
func (d *Document) indentAt(at int) string {
	line := d.data[bytes.LastIndexByte(d.data[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// edit replaces a range of the document's text.
type edit struct {
	start, end int
	text       string
}

// apply returns the text after edits, which are in order.
func (d *Document) apply(edits ...edit) []byte {
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(d.data[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(d.data[at:])
	return out.Bytes()
}

const whiteSpace = " \t\r\n"

func blank(text []byte) bool { return len(bytes.Trim(text, whiteSpace)) == 0 }

func quoteKey(key string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(key) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
