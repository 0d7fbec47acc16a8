package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Op is what a patch does to a file.
type Op string

// The operations.
const (
	Add    Op = "add"
	Delete Op = "delete"
	Update Op = "update"
)

// Patch is a parsed patch.
type Patch struct {
	Files []File // in the order of the patch
}

// File is the change of one file.
type File struct {
	Op     Op
	Path   string
	MoveTo string // of an update; empty keeps the path
	// Content is that of a file to add.
	Content string
	Hunks   []Hunk // of an update
	Line    int    // of its header in the patch, from 1
}

// Hunk is one change in a file.
type Hunk struct {
	Hints     []string // lines above the change, in their order in the file
	Section   string   // what a unified diff says after its line numbers
	At        int      // line in the file that a unified diff gives; 0 = none
	Lines     []Line
	EndOfFile bool
	Line      int // in the patch, from 1
}

// Line is a line of a hunk.
type Line struct {
	Kind byte // ' ' unchanged, '-' removed, '+' added
	Text string
}

// SyntaxError is an error in a patch.
type SyntaxError struct {
	Line    int // of the text, from 1; 0 for the text as a whole
	Message string
}

// Error implements [error].
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Message)
}

// The lines that structure a patch.
const (
	begin      = "*** Begin Patch"
	end        = "*** End Patch"
	endOfFile  = "*** End of File"
	addFile    = "*** Add File: "
	deleteFile = "*** Delete File: "
	updateFile = "*** Update File: "
	moveTo     = "*** Move to: "

	environment = "*** Environment ID:"
)

// parser parses a patch line by line.
type parser struct {
	lines []string
	at    int // index of the next line
	from  int // number of lines before the patch
}

// Parse parses a patch. It skips blank lines, a code fence or here-document
// around the patch, and carriage returns, and it takes a unified diff. The error is a *[SyntaxError].
func Parse(text string) (*Patch, error) {
	p, err := unwrap(text)
	if err != nil {
		return nil, err
	}
	patch := &Patch{}
	for p.at < len(p.lines) {
		if line := strings.TrimSpace(p.lines[p.at]); line == "" || p.at == 0 && strings.HasPrefix(line, environment) {
			p.at++ // a session has one environment
			continue
		}
		f, err := p.file()
		if err != nil {
			return nil, err
		}
		patch.Files = append(patch.Files, f)
	}
	if len(patch.Files) == 0 {
		return nil, &SyntaxError{p.from, "nothing between " + begin + " and " + end + ": expected " + addFile + "PATH, " + updateFile + "PATH or " + deleteFile + "PATH"}
	}
	return patch, nil
}

// unwrap finds the lines between the first and the last line of the patch.
func unwrap(text string) (*parser, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	lines := strings.Split(text, "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == begin })
	if first < 0 && isUnified(lines) {
		return &parser{lines: fromUnified(lines)}, nil
	}
	if first < 0 {
		return nil, &SyntaxError{0, "a patch must begin with the line " + begin}
	}
	for i, l := range lines[:first] {
		if t := strings.TrimSpace(l); t != "" && !strings.HasPrefix(t, "```") && !strings.Contains(t, "<<") {
			return nil, &SyntaxError{i + 1, fmt.Sprintf("expected %s, found %q", begin, clip(t))}
		}
	}
	last := len(lines) - 1
	for last > first && strings.TrimSpace(lines[last]) != end {
		if t := strings.TrimSpace(lines[last]); t != "" && !strings.HasPrefix(t, "```") && t != "EOF" && t != "PATCH" {
			return nil, &SyntaxError{last + 1, fmt.Sprintf("expected %s at the end, found %q", end, clip(t))}
		}
		last--
	}
	if last == first {
		return nil, &SyntaxError{len(lines), "a patch must end with the line " + end}
	}
	margin := lines[first][:strings.Index(lines[first], begin)] // of a patch that is indented as a whole
	for _, l := range lines[first:last] {
		if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, margin) {
			margin = ""
		}
	}
	lines = slices.Clone(lines[first+1 : last])
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, margin)
	}
	if isUnified(lines) {
		lines = fromUnified(lines)
	}
	return &parser{lines: lines, from: first + 1}, nil
}

func clip(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		return string(runes[:79]) + "…"
	}
	return s
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &SyntaxError{p.from + at + 1, fmt.Sprintf(format, args...)}
}

// file reads the section of a file.
func (p *parser) file() (File, error) {
	at, header := p.at, strings.TrimSpace(p.lines[p.at])
	f := File{Line: p.from + at + 1}
	for _, op := range []struct {
		op     Op
		prefix string
	}{{Add, addFile}, {Delete, deleteFile}, {Update, updateFile}} {
		if path, ok := strings.CutPrefix(header+" ", op.prefix); ok {
			f.Op, f.Path = op.op, strings.TrimSpace(path)
		}
	}
	switch {
	case f.Op == "":
		return f, p.fail(at, "expected %sPATH, %sPATH or %sPATH, found %q", addFile, updateFile, deleteFile, clip(header))
	case f.Path == "":
		return f, p.fail(at, "the path is missing")
	}
	p.at++
	switch f.Op {
	case Add:
		return p.added(f)
	case Update:
		return p.updated(f)
	}
	return f, nil
}

// added reads the lines of a new file.
func (p *parser) added(f File) (File, error) {
	var b strings.Builder
	for ; p.at < len(p.lines) && !strings.HasPrefix(strings.TrimSpace(p.lines[p.at]), "*** "); p.at++ {
		line := p.lines[p.at]
		text, ok := strings.CutPrefix(line, "+")
		if !ok && strings.TrimSpace(line) != "" {
			return f, p.fail(p.at, "every line of an added file must begin with +, found %q", clip(line))
		}
		if ok {
			b.WriteString(text + "\n")
		}
	}
	f.Content = b.String()
	return f, nil
}

// updated reads the hunks of a file to change.
func (p *parser) updated(f File) (File, error) {
	if p.at < len(p.lines) {
		if to, ok := strings.CutPrefix(strings.TrimSpace(p.lines[p.at])+" ", moveTo); ok {
			if f.MoveTo = strings.TrimSpace(to); f.MoveTo == "" {
				return f, p.fail(p.at, "the path to move to is missing")
			}
			p.at++
		}
	}
	for p.at < len(p.lines) && !p.section() {
		h, err := p.hunk()
		if err != nil {
			return f, err
		}
		if len(h.Lines) > 0 {
			f.Hunks = append(f.Hunks, h)
		}
	}
	if len(f.Hunks) == 0 && f.MoveTo == "" {
		return f, &SyntaxError{f.Line, "no changes to " + f.Path + ": expected @@ and lines that begin with a space, - or +"}
	}
	return f, nil
}

// section reports whether the next line begins the section of another file.
func (p *parser) section() bool {
	l := p.lines[p.at]
	if text := strings.TrimLeft(l, " \t"); len(l)-len(text) > 1 || strings.HasPrefix(l, "\t") { // one space is that of an unchanged line
		return slices.ContainsFunc([]string{addFile, deleteFile, updateFile}, func(h string) bool { return strings.HasPrefix(text, h) })
	}
	return strings.HasPrefix(l, "*** ") && strings.TrimRight(l, " \t") != endOfFile
}

// hunk reads the hints and the lines of a change.
func (p *parser) hunk() (Hunk, error) {
	h := Hunk{Line: p.from + p.at + 1}
	for ; p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@"); p.at++ {
		header := strings.TrimSpace(strings.TrimPrefix(p.lines[p.at], "@@"))
		if m := unifiedHeader().FindStringSubmatch(header); m != nil {
			h.At, _ = strconv.Atoi(m[1]) // too large a number is none
			h.Section = strings.TrimSpace(m[2])
			continue
		}
		if hint := strings.TrimSpace(strings.TrimSuffix(header, "@@")); hint != "" {
			h.Hints = append(h.Hints, hint)
		}
	}
	for ; p.at < len(p.lines) && !p.section() && !strings.HasPrefix(p.lines[p.at], "@@"); p.at++ {
		line := p.lines[p.at]
		if strings.TrimRight(line, " \t") == endOfFile {
			h.EndOfFile = true
			p.at++
			break
		}
		switch {
		case line == "":
			h.Lines = append(h.Lines, Line{' ', ""}) // without its space
		case strings.IndexByte(" +-", line[0]) >= 0:
			h.Lines = append(h.Lines, Line{line[0], line[1:]})
		case line[0] == '\\': // "\ No newline at end of file", of unified diffs
		case line[0] == '\t':
			h.Lines = append(h.Lines, Line{' ', line})
		default:
			return h, p.fail(p.at, "a line of a change must begin with a space, - or +, found %q", clip(line))
		}
	}
	h.Lines = trimBlank(h.Lines)
	return h, nil
}

// unifiedHeader is that of a hunk in a unified diff, such as
// "-1,3 +1,4 @@ func f() {", whose numbers are unreliable.
var unifiedHeader = lazy.Regexp(`^-(\d+)(?:,\d+)? \+\d+(?:,\d+)?(?:\s*@@(.*)|\s*)$`)

// trimBlank drops blank lines at the end, which separate a hunk from the next.
func trimBlank(lines []Line) []Line {
	for n := len(lines); n > 0 && lines[n-1] == (Line{' ', ""}); n-- {
		lines = lines[:n-1]
	}
	return lines
}
