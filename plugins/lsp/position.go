package lsp

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// The encodings of positions: what a character of a line is.
const (
	utf8Units  = "utf-8"
	utf16Units = "utf-16" // the default
	utf32Units = "utf-32"
)

// position is a place in a document; both count from 0.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

// units returns how many units of an encoding a rune takes.
func units(r rune, size int, encoding string) int {
	switch {
	case encoding == utf8Units:
		return size
	case encoding == utf16Units && r >= 0x10000:
		return 2
	}
	return 1
}

// lineStarts returns the offsets of a text's lines, which end as the protocol says:
// with \n, \r\n or \r.
func lineStarts(text string) []int {
	starts := []int{0}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\n', text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			starts = append(starts, i+1)
		}
	}
	return starts
}

// lineText returns a line without its end.
func lineText(text string, starts []int, line int) string {
	end := len(text)
	if line+1 < len(starts) {
		end = starts[line+1]
	}
	return strings.TrimRight(text[starts[line]:end], "\r\n")
}

// offset returns the offset of a position. A character after the end of its line is
// that end; a line after the last one is an error, except the very end.
func offset(text string, starts []int, p position, encoding string) (int, error) {
	if p.Line == len(starts) && p.Character == 0 {
		return len(text), nil
	}
	if p.Line < 0 || p.Line >= len(starts) || p.Character < 0 {
		return 0, fmt.Errorf("the position %d:%d is not in the file", p.Line+1, p.Character+1)
	}
	left, line := p.Character, lineText(text, starts, p.Line)
	at := 0
	for at < len(line) {
		// Servers get an invalid byte as U+FFFD.
		r, size := utf8.DecodeRuneInString(line[at:])
		if left -= units(r, utf8.RuneLen(r), encoding); left < 0 {
			break // in the middle of a character
		}
		at += size
	}
	return starts[p.Line] + at, nil
}

// positionOf returns the position of an offset.
func positionOf(text string, starts []int, at int, encoding string) position {
	line, exact := slices.BinarySearch(starts, at)
	if !exact {
		line--
	}
	p := position{Line: line}
	for _, r := range text[starts[line]:at] {
		p.Character += units(r, utf8.RuneLen(r), encoding)
	}
	return p
}

// word is a place of a name in a text.
type word struct{ line, start, end int } // offsets

// words returns the places of a name, on one line (from 1), or on all of them.
func words(text string, starts []int, name string, line int) (list []word) {
	isWord := regexp.MustCompile(`[\pL\pN_$]`).MatchString
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return list
		}
		start := at + i
		at = start + len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[at:])
		first, _ := utf8.DecodeRuneInString(name)
		last, _ := utf8.DecodeLastRuneInString(name)
		if start > 0 && isWord(string(before)) && isWord(string(first)) || at < len(text) && isWord(string(after)) && isWord(string(last)) {
			continue
		}
		n, exact := slices.BinarySearch(starts, start)
		if exact {
			n++
		}
		if line == 0 || line == n {
			list = append(list, word{n, start, at})
		}
	}
}

// uriOf returns the URI of an absolute path.
func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/x
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// pathOf returns the path of a file's URI; empty for any other.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
		if len(path) > 1 && path[1] == ':' {
			path = strings.ToUpper(path[:1]) + path[1:]
		}
		if u.Host != "" {
			path = "//" + u.Host + u.Path
		}
	}
	return filepath.Clean(filepath.FromSlash(path))
}
