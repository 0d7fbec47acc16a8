package highlight

import (
	"archive/zip"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
)

// Limits of what is highlighted.
const (
	maxBytes = 32 << 10
	maxLine  = 4 << 10
	maxTime  = 300 * time.Millisecond
)

//go:embed languages.zip
var languages []byte

// Kind is what a piece of code is.
type Kind byte

// The kinds.
const (
	Other Kind = iota
	Comment
	Keyword
	Type
	Function
	String
	Number
	Name // of an attribute, a key, a tag
	Added
	Removed
	Heading
)

// Span is a piece of one line.
type Span struct {
	Text string
	Kind Kind
}

// Highlighter knows the languages. The zero value is ready. It is safe for
// concurrent use.
type Highlighter struct {
	limit time.Duration // of the time for one code; 0 means maxTime

	mu      sync.Mutex
	archive *zip.Reader
	known   []language
	loaded  map[string]chroma.Lexer // by file; nil if it cannot be used
}

// language is an entry of the archive's index.
type language struct {
	File  string   `json:"file"`
	Names []string `json:"names"`
	Globs []string `json:"globs"`
	Uses  []string `json:"uses"`
}

// Language returns the language of a file, or "".
func (h *Highlighter) Language(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	name = path.Base(filepath.ToSlash(name))
	for _, l := range h.index() {
		if slices.ContainsFunc(l.Globs, func(glob string) bool { ok, _ := path.Match(glob, name); return ok }) {
			return l.File
		}
	}
	return ""
}

// Known reports whether a language can be highlighted.
func (h *Highlighter) Known(language string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	file := h.find(strings.ToLower(language))
	l, loaded := h.loaded[file]
	return file != "" && (!loaded || l != nil)
}

// Lines returns the lines of code, without their newlines. It returns nil if the
// language is unknown, and for code that is too large or too hard to read.
func (h *Highlighter) Lines(language, code string) [][]Span {
	if language == "" || code == "" || len(code) > maxBytes || longLine(code) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	file := h.find(strings.ToLower(language))
	l := h.load(file)
	if l == nil {
		return nil
	}
	lines, late := split(l, code, cmp.Or(h.limit, maxTime))
	if late {
		h.loaded[file] = nil // it would be late again
	}
	return lines
}

func longLine(code string) bool {
	for line := range strings.SplitSeq(code, "\n") {
		if len(line) > maxLine {
			return true
		}
	}
	return false
}

// index returns the languages.
func (h *Highlighter) index() []language {
	if h.archive != nil {
		return h.known
	}
	var err error
	if h.archive, err = zip.NewReader(bytes.NewReader(languages), int64(len(languages))); err != nil {
		panic(fmt.Sprintf("the archive of languages is damaged: %v", err)) // a test reads it
	}
	h.loaded = map[string]chroma.Lexer{}
	f, err := h.archive.Open("index.json")
	if err != nil {
		panic(fmt.Sprintf("the archive of languages has no index: %v", err))
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(&h.known); err != nil {
		panic(fmt.Sprintf("the index of languages is damaged: %v", err))
	}
	return h.known
}

// find returns the file of a language, or "".
func (h *Highlighter) find(name string) string {
	if name == "" {
		return ""
	}
	for _, l := range h.index() {
		if l.File == name || slices.Contains(l.Names, name) {
			return l.File
		}
	}
	return ""
}

// load returns a language, and nil for "".
func (h *Highlighter) load(file string) chroma.Lexer {
	if l, ok := h.loaded[file]; ok || file == "" {
		return l
	}
	h.loaded[file] = nil // ends a circle
	registry := chroma.NewLexerRegistry()
	for _, l := range h.known {
		if l.File != file {
			continue
		}
		for _, other := range l.Uses {
			if used := h.load(other); used != nil {
				registry.Register(used)
			}
		}
	}
	lexer, err := chroma.NewXMLLexer(h.archive, file+".xml")
	if err != nil {
		return nil
	}
	lexer.SetRegistry(registry)
	registry.Register(lexer)
	h.loaded[file] = lexer
	return lexer
}

// split reads code. It reports whether that took too long.
func split(l chroma.Lexer, code string, limit time.Duration) (lines [][]Span, late bool) {
	defer func() {
		if recover() != nil { // chroma's way to say that a definition is wrong
			lines = nil
		}
	}()
	next, err := l.Tokenise(&chroma.TokeniseOptions{State: "root"}, code)
	if err != nil {
		return nil, false
	}
	begin := time.Now()
	line, at := []Span{}, 0
	for t := next(); t != chroma.EOF; t = next() {
		rest := code[at:]
		if time.Since(begin) > limit {
			return nil, true
		}
		if !strings.HasPrefix(rest, t.Value) {
			if t.Value != rest+"\n" { // a newline that was not there
				return nil, false
			}
			t.Value = rest
		}
		at += len(t.Value)
		for i, text := range strings.Split(t.Value, "\n") {
			if i > 0 {
				lines, line = append(lines, line), nil
			}
			line = add(line, text, kindOf(t.Type))
		}
	}
	if at != len(code) {
		return nil, false
	}
	if len(line) > 0 {
		lines = append(lines, line)
	}
	return lines, false
}

// add appends text to a line.
func add(line []Span, text string, kind Kind) []Span {
	if n := len(line); n > 0 && line[n-1].Kind == kind {
		line[n-1].Text += text
		return line
	}
	if text == "" {
		return line
	}
	return append(line, Span{text, kind})
}

// kindOf returns the kind of a token.
func kindOf(t chroma.TokenType) Kind {
	switch t {
	case chroma.CommentPreproc, chroma.KeywordPseudo, chroma.NameDecorator, chroma.OperatorWord, chroma.NameBuiltinPseudo:
		return Keyword
	case chroma.KeywordType, chroma.NameClass, chroma.NameException, chroma.NameNamespace:
		return Type
	case chroma.NameFunction, chroma.NameFunctionMagic, chroma.NameBuiltin:
		return Function
	case chroma.NameAttribute, chroma.NameTag, chroma.NameProperty, chroma.NameEntity, chroma.NameVariable, chroma.NameVariableGlobal, chroma.NameLabel:
		return Name
	case chroma.GenericInserted:
		return Added
	case chroma.GenericDeleted:
		return Removed
	case chroma.GenericHeading, chroma.GenericSubheading:
		return Heading
	case chroma.LiteralDate:
		return Number
	}
	switch {
	case t.InCategory(chroma.Comment):
		return Comment
	case t.InCategory(chroma.Keyword):
		return Keyword
	case t.InSubCategory(chroma.LiteralString):
		return String
	case t.InSubCategory(chroma.LiteralNumber):
		return Number
	}
	return Other
}
