package skills

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/core/frontmatter"
	"github.com/seed-009c0928/agent/core/lazy"
)

// Parse reads a SKILL.md. It is lenient: what can be repaired is repaired and
// reported, and without a description the first paragraph serves as one. The
// manifest is nil only if the file is empty, not text, too large, or has front
// matter that cannot be read; then a diagnostic of severity Error says why. File
// is the name used in diagnostics.
func Parse(file string, data []byte) (*Manifest, []Diagnostic) {
	r := &report{file: file}
	text, ok := normal(r, data)
	if !ok {
		return nil, r.sorted()
	}
	front, body, bodyLine, ok := split(r, text)
	if !ok {
		return nil, r.sorted()
	}
	root, ok := r.decode(front)
	if !ok {
		return nil, r.sorted()
	}
	clean, hiddenChars := visible(body)
	clean = strings.TrimSpace(clean)
	m := r.manifest(root, clean)
	if m == nil {
		return nil, r.sorted()
	}
	m.Body = clean
	m.BodyLine = bodyLine + strings.Count(body[:len(body)-len(strings.TrimLeft(body, " \t\n"))], "\n")
	if hiddenChars > 0 {
		r.add(Warning, m.BodyLine, 1, "the text contains %d invisible characters (control, bidirectional or tag): removed", hiddenChars)
	}
	if m.Body == "" {
		r.add(Note, bodyLine, 1, "the skill has no text: describe the work below the front matter")
	}
	return m, r.sorted()
}

// normal returns a file's content as text with Unix line endings.
func normal(r *report, data []byte) (string, bool) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > maxFile:
		r.add(Error, 1, 1, "the file is larger than %d KiB: move details to files in references/", maxFile>>10)
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		r.add(Error, 1, 1, "the file is UTF-16: save it as UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		line, column := position(data, bytes.IndexByte(data, 0))
		r.add(Error, line, column, "the file contains a NUL byte: it is not text")
	case !utf8.Valid(data):
		at := 0
		for rest := data; len(rest) > 0; {
			c, n := utf8.DecodeRune(rest)
			if c == utf8.RuneError && n == 1 {
				break
			}
			at, rest = at+n, rest[n:]
		}
		line, column := position(data, at)
		r.add(Error, line, column, "the file is not valid UTF-8: save it as UTF-8")
	default:
		text := strings.ReplaceAll(string(data), "\r\n", "\n")
		return strings.ReplaceAll(text, "\r", "\n"), true
	}
	return "", false
}

func position(data []byte, at int) (line, column int) {
	before := data[:at]
	return bytes.Count(before, []byte("\n")) + 1, at - bytes.LastIndexByte(before, '\n')
}

// split cuts a file at the fences of its front matter. A file without any is
// only a body, unless it has front matter in another form or place.
func split(r *report, text string) (front, body string, bodyLine int, ok bool) {
	if strings.TrimSpace(text) == "" {
		r.add(Error, 1, 1, "the file is empty: describe the work, below front matter with a description")
		return "", "", 0, false
	}
	front, body, bodyLine, err := frontmatter.Split(text)
	first := 1 + strings.Count(text[:len(text)-len(strings.TrimLeft(text, " \t\n"))], "\n")
	switch {
	case errors.Is(err, frontmatter.ErrNone) && !otherForm().MatchString(text):
	case err != nil:
		r.add(Error, first, 1, "%v", err)
		return "", "", 0, false
	case len(front) > maxFrontMatter:
		r.add(Error, first, 1, "the front matter is larger than %d KiB", maxFrontMatter>>10)
		return "", "", 0, false
	}
	return front, body, bodyLine, true
}

// otherForm matches what is meant as front matter but is not YAML: JSON, TOML, other
// fences, or text above it.
var otherForm = lazy.Regexp(`^\s*(?:---|\+\+\+|\{)|(?m:^---[ \t]*\n(?:[^\n]*\n){0,20}?(?:name|description):)`)

// decode reads the front matter's YAML, repaired if necessary. Without any, the
// mapping is nil.
func (r *report) decode(front string) (*yaml.Node, bool) {
	if strings.TrimSpace(front) == "" {
		return nil, true
	}
	root, fault := frontmatter.Decode(front)
	switch {
	case root == nil:
		r.add(Error, fault.Line, 1, "the front matter is not valid YAML: %s", fault.Message)
		return nil, false
	case fault != nil:
		r.add(Warning, fault.Line, 1, "the front matter is not valid YAML (%s) and was repaired: quote values that contain a colon, and indent with spaces", fault.Message)
	}
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	switch root.Kind {
	case 0:
		return nil, true
	case yaml.MappingNode:
		return root, true
	}
	r.add(Error, root.Line+1, root.Column, "the front matter is not a mapping: write lines such as \"description: …\"")
	return nil, false
}
