package skills

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/adrg/frontmatter"
	"go.yaml.in/yaml/v3"
)

// Parse reads a SKILL.md. It is lenient: what can be repaired is repaired and
// reported. The manifest is nil only if the file is not text, is too large, or
// has no readable front matter or no description; then a diagnostic of severity
// Error says why. File is the name used in diagnostics.
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
	m := r.manifest(root)
	if m == nil {
		return nil, r.sorted()
	}
	clean, hiddenChars := visible(body)
	m.Body = strings.TrimSpace(clean)
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

// split cuts a file at the fences of its front matter: lines of three dashes in
// the first column. The front matter keeps the empty lines above it, so that its
// line numbers are one less than the file's.
func split(r *report, text string) (front, body string, bodyLine int, ok bool) {
	lines := strings.SplitAfter(text, "\n")
	first := 0
	for first < len(lines) && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	if first == len(lines) {
		r.add(Error, 1, 1, "the file is empty: add front matter with a description")
		return "", "", 0, false
	}
	if !fence(lines[first]) {
		r.add(Error, first+1, 1, "missing front matter: the file must begin with a line of three dashes")
		return "", "", 0, false
	}
	for i := first + 1; i < len(lines); i++ {
		if !fence(lines[i]) {
			continue
		}
		front = strings.Repeat("\n", first) + strings.Join(lines[first+1:i], "")
		if len(front) > maxFrontMatter {
			r.add(Error, first+1, 1, "the front matter is larger than %d KiB", maxFrontMatter>>10)
			return "", "", 0, false
		}
		return front, strings.Join(lines[i+1:], ""), i + 2, true
	}
	r.add(Error, first+1, 1, "the front matter is not closed: end it with a line of three dashes in the first column")
	return "", "", 0, false
}

func fence(line string) bool { return strings.TrimRight(line, " \t\n") == "---" }

// delimiter fences the front matter for the library. Its default, a line that
// is three dashes after trimming, would end at an indented one in a block; the
// text cannot contain a NUL at this point.
const delimiter = "---\x00"

// decode reads the front matter's YAML, repaired if necessary.
func (r *report) decode(front string) (*yaml.Node, bool) {
	root, err := decodeYAML(front)
	if err == nil {
		return r.mapping(root)
	}
	line, message := yamlError(err)
	if repaired := repair(front); repaired != front {
		if root, again := decodeYAML(repaired); again == nil {
			r.add(Warning, line, 1, "the front matter is not valid YAML (%s) and was repaired: quote values that contain a colon, and indent with spaces", message)
			return r.mapping(root)
		}
	}
	r.add(Error, line, 1, "the front matter is not valid YAML: %s", message)
	return nil, false
}

func decodeYAML(front string) (root *yaml.Node, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("yaml: line 1: cannot read: %v", v)
		}
	}()
	root = &yaml.Node{}
	format := frontmatter.NewFormat(delimiter, delimiter, yaml.Unmarshal)
	_, err = frontmatter.MustParse(strings.NewReader(delimiter+"\n"+front+delimiter+"\n"), root, format)
	return root, err
}

var yamlLine = lazily(`^yaml: (?:unmarshal errors:\s+)?line (\d+): `)

// yamlError extracts the line from the library's message. Line numbers of the
// front matter are one less than those of the file.
func yamlError(err error) (line int, message string) {
	text := err.Error()
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if errors.Is(err, frontmatter.ErrNotFound) {
		text = "not found"
	}
	return line + 1, strings.TrimPrefix(text, "yaml: ")
}

// mapping returns the top-level mapping of a front matter.
func (r *report) mapping(root *yaml.Node) (*yaml.Node, bool) {
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if root.Kind == yaml.MappingNode {
		return root, true
	}
	if root.Kind == 0 {
		r.add(Error, 1, 1, "the front matter is empty: add a description")
		return nil, false
	}
	r.add(Error, root.Line+1, root.Column, "the front matter is not a mapping: write lines such as \"description: …\"")
	return nil, false
}

var keyLine = lazily(`^([ \t]*)([A-Za-z_][A-Za-z0-9_.-]*):[ \t]+(\S.*)$`)

// repair quotes plain values that YAML would misread, including continuation
// lines, and replaces leading tabs by spaces. Line numbers do not change.
func repair(front string) string {
	lines := strings.Split(front, "\n")
	for i := range lines {
		text := strings.TrimLeft(lines[i], "\t")
		lines[i] = strings.Repeat("  ", len(lines[i])-len(text)) + text
	}
	for i := 0; i < len(lines); i++ {
		m := keyLine().FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		indent, value, end := len(m[1]), strings.TrimSpace(m[3]), i+1
		if !plain(value) {
			if value[0] == '|' || value[0] == '>' { // a block scalar: its lines are text
				for i+1 < len(lines) && continues(lines[i+1], indent) {
					i++
				}
			}
			continue
		}
		for end < len(lines) && continues(lines[end], indent) && strings.TrimSpace(lines[end]) != "" {
			value += " " + strings.TrimSpace(lines[end])
			end++
		}
		if !misread(value) {
			continue
		}
		lines[i] = m[1] + m[2] + ": '" + strings.ReplaceAll(value, "'", "''") + "'"
		for j := i + 1; j < end; j++ {
			lines[j] = ""
		}
		i = end - 1
	}
	return strings.Join(lines, "\n")
}

// continues reports whether a line belongs to the value of a key at indent.
func continues(line string, indent int) bool {
	text := strings.TrimLeft(line, " ")
	return text == "" || len(line)-len(text) > indent
}

// plain reports whether a value is meant as a plain scalar: not quoted, and not
// a block, list, mapping, anchor or tag.
func plain(value string) bool {
	switch value[0] {
	case '"', '\'', '|', '>', '{', '&', '!':
		return false
	case '[':
		return strings.IndexByte(value, ']') != len(value)-1
	case '*':
		return strings.ContainsAny(value, " \t*") && len(value) > 1 && strings.ContainsAny(value[1:], " *")
	}
	return true
}

// misread reports whether YAML reads a plain value as something else.
func misread(value string) bool {
	return strings.Contains(value, ": ") || strings.HasSuffix(value, ":") || strings.Contains(value, " #") || strings.ContainsAny(value[:1], "@`%*[]},?")
}
