package jsonpos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error is an error at a position in a document.
type Error struct {
	File    string // as the caller named it
	Line    int    // from 1
	Column  int    // in characters, from 1
	Pointer string // JSON pointer of the invalid value; empty for the whole document
	Message string // what is wrong
	Hint    string // how to fix it; may be empty
}

// Error implements error: "file:line:column: message; hint".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Decode decodes data into the value that v points to. Name is the file name in
// errors. An error in data is an [*Error], and does not change the value. Members
// that are not in data keep their values, so that documents can be merged.
func Decode(name string, data []byte, v any) error {
	d, err := Parse(name, data)
	if err != nil {
		return err
	}
	return d.Decode(v)
}

// Document is a parsed document. It is immutable.
type Document struct {
	name  string
	data  []byte // without the byte order mark
	plain []byte // data with blanks for comments and trailing commas
	lines []int  // where each line begins
	root  *node
}

var bom = []byte("\ufeff")

// Parse parses data. Name is the file name in errors, which are [*Error]s.
func Parse(name string, data []byte) (*Document, error) {
	return parse(name, data, false)
}

// ParseJSONC is Parse for JSON with comments (// and /* */) and trailing commas.
func ParseJSONC(name string, data []byte) (*Document, error) {
	return parse(name, data, true)
}

func parse(name string, data []byte, jsonc bool) (*Document, error) {
	d := &Document{name: name, data: bytes.TrimPrefix(data, bom)}
	d.lines = []int{0}
	for i, c := range d.data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	p := parser{data: d.data, jsonc: jsonc}
	root, err := p.document()
	if err != nil {
		return nil, d.errorAt(err.offset, err.pointer, err.message, err.hint)
	}
	d.root, d.plain = root, p.plain()
	return d, nil
}

// Decode is [Decode] of the document.
func (d *Document) Decode(v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("jsonpos: cannot decode into %T: a non-nil pointer is needed", v)
	}
	c := checker{doc: d}
	if err := c.check(d.root, target.Type().Elem(), ""); err != nil {
		return err
	}
	if err := json.Unmarshal(d.plain, v); err != nil {
		return d.errorAt(d.root.start, "", err.Error(), "")
	}
	return nil
}

// Position returns the line and the column of the value at a JSON pointer, or
// 0, 0 if there is none.
func (d *Document) Position(pointer string) (line, col int) {
	n := d.root.find(pointer)
	if n == nil {
		return 0, 0
	}
	return d.lineCol(n.start)
}

// Errorf returns an error at the value of a pointer or, if there is none, at the
// nearest enclosing value. It is for validation after decoding.
func (d *Document) Errorf(pointer, hint, format string, args ...any) *Error {
	at := pointer
	n := d.root.find(at)
	for n == nil {
		at = at[:max(strings.LastIndexByte(at, '/'), 0)]
		n = d.root.find(at)
	}
	return d.errorAt(n.start, pointer, fmt.Sprintf(format, args...), hint)
}

func (d *Document) errorAt(offset int, pointer, message, hint string) *Error {
	line, col := d.lineCol(offset)
	return &Error{File: d.name, Line: line, Column: col, Pointer: pointer, Message: message, Hint: hint}
}

func (d *Document) lineCol(offset int) (line, col int) {
	offset = min(offset, len(d.data))
	line, _ = slices.BinarySearch(d.lines, offset+1)
	return line, utf8.RuneCount(d.data[d.lines[line-1]:offset]) + 1
}

// escape returns a key as a segment of a JSON pointer.
func escape(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func unescape(segment string) string {
	if strings.IndexByte(segment, '~') < 0 {
		return segment
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
}
