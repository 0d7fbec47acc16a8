package lsp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The actions of a [Query].
const (
	Definition  = "definition"
	References  = "references"
	Rename      = "rename"
	Diagnostics = "diagnostics"
)

// Query is a question about a file, or a symbol in it.
type Query struct {
	Action  string `json:"action" enum:"definition,references,rename,diagnostics"`
	File    File   `json:"file"`
	Symbol  string `json:"symbol,omitempty"`
	Line    int    `json:"line,omitempty"` // of the symbol, from 1; 0 = wherever it is
	NewName string `json:"new_name,omitempty"`
}

// Answer answers a [Query].
type Answer struct {
	Server    string     `json:"server"`
	Locations []Location `json:"locations,omitempty"`
	More      int        `json:"more,omitempty"` // that are left out
	Edits     []FileEdit `json:"edits,omitempty"`
	Text      string     `json:"text,omitempty"` // of diagnostics
}

// Location is a place in a file; line and column count from 1.
type Location struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// FileEdit is what changes in a file.
type FileEdit struct {
	Path   string  `json:"path"`
	SHA256 string  `json:"sha256"` // of the content that the ranges are for, in hex
	Ranges []Range `json:"ranges"` // in order, without overlaps
}

// Range replaces bytes.
type Range struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

// Apply returns a file's content with the edit. The error is that of another content.
func (e FileEdit) Apply(content []byte) ([]byte, error) {
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != e.SHA256 {
		return nil, fmt.Errorf("%s is not what the language server has read: save it if it is open in an editor, and try again", e.Path)
	}
	var b bytes.Buffer
	at := 0
	for _, r := range e.Ranges {
		if r.Start < at || r.End < r.Start || r.End > len(content) {
			return nil, fmt.Errorf("the edits of %s overlap or lie outside it", e.Path)
		}
		b.Write(content[at:r.Start])
		b.WriteString(r.Text)
		at = r.End
	}
	b.Write(content[at:])
	return b.Bytes(), nil
}

const (
	maxLocations  = 200
	maxCandidates = 5   // places of a symbol without a line that are tried
	maxEditFiles  = 500 // of a rename
)

// query answers a question.
func (s *servers) query(ctx context.Context, dir string, q Query) (Answer, error) {
	slot, err := s.slotOf(q.File.Path)
	if err != nil {
		return Answer{}, fmt.Errorf("%s: %w", relative(dir, q.File.Path), err)
	}
	c, err := slot.await(ctx)
	if err != nil {
		return Answer{}, err
	}
	c.rescan()
	before := c.document(q.File.Path)
	_, place := c.changedSince(0)
	doc, err := c.open(q.File)
	if err != nil {
		return Answer{}, c.cause(err)
	}
	if doc == before {
		place = 0 // what is known of it still holds
	}
	answer := Answer{Server: c.spec.Name}
	if q.Action == Diagnostics {
		answer.Text, err = s.diagnose(ctx, c, dir, q.File.Path, doc, place)
		return answer, err
	}
	places, err := doc.places(q)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", relative(dir, q.File.Path), err)
	}
	var failed error
	for _, w := range places {
		at := map[string]any{"textDocument": map[string]any{"uri": uriOf(q.File.Path)}, "position": positionOf(doc.text, doc.starts, w.start, c.caps.Encoding)}
		if q.Action == Rename {
			answer.Edits, err = c.rename(ctx, at, q)
		} else {
			answer.Locations, answer.More, err = c.locate(ctx, q.Action, at)
		}
		if len(answer.Edits)+len(answer.Locations) > 0 || ctx.Err() != nil {
			return answer, err
		}
		failed = cmp.Or(failed, err)
	}
	if failed == nil {
		failed = fmt.Errorf("%s knows no symbol %s there", c.spec.Name, q.Symbol)
	}
	return answer, failed
}

// places returns where the symbol may be.
func (d *document) places(q Query) ([]word, error) {
	name := strings.TrimSuffix(strings.TrimSpace(q.Symbol), "()")
	for _, sep := range []string{".", "::", "->", "#"} {
		if i := strings.LastIndex(name, sep); i >= 0 {
			name = name[i+len(sep):]
		}
	}
	if name == "" {
		return nil, errors.New(`missing "symbol": the name of a function, type or variable`)
	}
	list := words(d.text, d.starts, name, q.Line)
	var lines []string
	for _, w := range words(d.text, d.starts, name, 0) {
		if line := fmt.Sprint(w.line); !slices.Contains(lines, line) && len(lines) < 10 {
			lines = append(lines, line)
		}
	}
	switch {
	case len(lines) == 0:
		return nil, fmt.Errorf("%s is not in the file", name)
	case len(list) == 0:
		return nil, fmt.Errorf("%s is not on line %d, but on line %s", name, q.Line, strings.Join(lines, ", "))
	case q.Action == Rename && q.Line == 0 && len(lines) > 1:
		return nil, fmt.Errorf("%s is on lines %s: give the line of the one to rename", name, strings.Join(lines, ", "))
	}
	return list[:min(len(list), maxCandidates)], nil
}

type location struct {
	URI         string `json:"uri"`
	Range       span   `json:"range"`
	TargetURI   string `json:"targetUri"` // of a link
	TargetRange span   `json:"targetSelectionRange"`
}

// locate returns where a symbol is defined or used.
func (c *client) locate(ctx context.Context, action string, at map[string]any) (list []Location, more int, err error) {
	method := "textDocument/definition"
	if action == References {
		method = "textDocument/references"
		at["context"] = map[string]any{"includeDeclaration": true}
	}
	var raw json.RawMessage
	if err := c.call(ctx, method, at, &raw); err != nil {
		return nil, 0, err
	}
	var found []location
	if json.Unmarshal(raw, &found) != nil { // one, or null
		var one location
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, 0, fmt.Errorf("%s answered with %.100q", c.spec.Name, raw)
		}
		found = []location{one}
	}
	texts := map[string]*document{}
	for _, l := range found {
		if l.TargetURI != "" {
			l.URI, l.Range = l.TargetURI, l.TargetRange
		}
		path := pathOf(l.URI)
		if path == "" {
			continue // such as code in an archive
		}
		if len(list) == maxLocations {
			more++
			continue
		}
		at := Location{path, l.Range.Start.Line + 1, l.Range.Start.Character + 1}
		if doc := c.content(texts, path); doc != nil {
			if i, err := offset(doc.text, doc.starts, l.Range.Start, c.caps.Encoding); err == nil {
				at.Column = positionOf(doc.text, doc.starts, i, utf32Units).Character + 1
			}
		}
		if !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	slices.SortStableFunc(list, func(a, b Location) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return list, more, nil
}

// content returns a file as the server knows it; nil if it cannot be read.
func (c *client) content(texts map[string]*document, path string) *document {
	if doc := cmp.Or(c.document(path), texts[path]); doc != nil {
		return doc
	}
	raw, _, err := readText(File{Path: path})
	if err != nil {
		return nil
	}
	text := strings.TrimPrefix(raw, byteOrderMark)
	texts[path] = &document{text: text, starts: lineStarts(text), raw: raw}
	return texts[path]
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type workspaceEdit struct {
	Changes   map[string][]textEdit `json:"changes"`
	Documents []struct {
		Kind         string `json:"kind"` // of what is done with a file
		TextDocument struct {
			URI string `json:"uri"`
		} `json:"textDocument"`
		Edits []textEdit `json:"edits"`
	} `json:"documentChanges"`
}

// rename returns the edits that rename a symbol.
func (c *client) rename(ctx context.Context, at map[string]any, q Query) ([]FileEdit, error) {
	if strings.TrimSpace(q.NewName) == "" {
		return nil, errors.New(`missing "new_name"`)
	}
	at["newName"] = q.NewName
	var edit workspaceEdit
	if err := c.call(ctx, "textDocument/rename", at, &edit); err != nil {
		return nil, err
	}
	byPath := map[string][]textEdit{}
	add := func(uri string, edits []textEdit) error {
		path := pathOf(uri)
		if path == "" {
			return fmt.Errorf("the rename changes %s, which is not a file", uri)
		}
		byPath[path] = append(byPath[path], edits...)
		return nil
	}
	for _, d := range edit.Documents {
		if d.Kind != "" {
			return nil, fmt.Errorf("the rename would %s files: do that first, in another way", d.Kind)
		}
		if err := add(d.TextDocument.URI, d.Edits); err != nil {
			return nil, err
		}
	}
	if len(edit.Documents) == 0 {
		for uri, edits := range edit.Changes {
			if err := add(uri, edits); err != nil {
				return nil, err
			}
		}
	}
	if len(byPath) > maxEditFiles {
		return nil, fmt.Errorf("the rename changes %d files, more than %d", len(byPath), maxEditFiles)
	}
	texts := map[string]*document{}
	var list []FileEdit
	for _, path := range sortedKeys(byPath) {
		doc := c.content(texts, path)
		if doc == nil {
			return nil, fmt.Errorf("the rename changes %s, which cannot be read", path)
		}
		e, err := doc.edit(path, byPath[path], c.caps.Encoding)
		if err != nil {
			return nil, err
		}
		if len(e.Ranges) > 0 {
			list = append(list, e)
		}
	}
	return list, nil
}

// edit converts edits to ranges of bytes.
func (d *document) edit(path string, edits []textEdit, encoding string) (FileEdit, error) {
	sum := sha256.Sum256([]byte(d.raw))
	e := FileEdit{Path: path, SHA256: hex.EncodeToString(sum[:])}
	mark := len(d.raw) - len(d.text)
	for _, t := range edits {
		start, err := offset(d.text, d.starts, t.Range.Start, encoding)
		if err != nil {
			return e, fmt.Errorf("%s: %w", path, err)
		}
		end, err := offset(d.text, d.starts, t.Range.End, encoding)
		if err != nil {
			return e, fmt.Errorf("%s: %w", path, err)
		}
		r := Range{mark + start, mark + end, t.NewText}
		if !slices.Contains(e.Ranges, r) {
			e.Ranges = append(e.Ranges, r)
		}
	}
	slices.SortStableFunc(e.Ranges, func(a, b Range) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	return e, nil
}

// diagnose returns the problems of one file, and waits for them.
func (s *servers) diagnose(ctx context.Context, c *client, dir, path string, doc *document, place int) (string, error) {
	soon, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	c.pull(path, doc.version)
	for {
		news := s.changed()
		ok, wait := c.diagnosed(path, doc.version, place)
		select {
		case <-c.ended:
			return "", fmt.Errorf("%s: %w", c.spec.Name, c.failed)
		default:
		}
		if ok {
			return strings.TrimSuffix(problemLines(c, dir, path, c.list(path, true)), "\n"), nil
		}
		if !sleep(soon, news, wait) {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", fmt.Errorf("%s has not told the problems of %s within %s; it may still read the workspace: try again later", c.spec.Name, relative(dir, path), diagnoseTime)
		}
	}
}

// diagnoseTime is how long a query waits for the problems of a file.
const diagnoseTime = 20 * time.Second
