package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/adrg/frontmatter"
	"go.yaml.in/yaml/v3"
)

// The errors of [Split].
var (
	ErrNone = errors.New("missing front matter: the file must begin with a line of three dashes")
	ErrOpen = errors.New("the front matter is not closed: end it with a line of three dashes in the first column")
)

// Split cuts a text at the fences of its front matter: lines of three dashes in
// the first column. The front matter keeps the empty lines above it, so that its
// line numbers are one less than the file's. Line is that of the file at which
// the body begins.
func Split(text string) (front, body string, line int, err error) {
	lines := strings.SplitAfter(text, "\n")
	first := 0
	for first < len(lines) && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	if first == len(lines) || !fence(lines[first]) {
		return "", text, 1, ErrNone
	}
	for i := first + 1; i < len(lines); i++ {
		if fence(lines[i]) {
			return strings.Repeat("\n", first) + strings.Join(lines[first+1:i], ""), strings.Join(lines[i+1:], ""), i + 2, nil
		}
	}
	return "", "", 0, ErrOpen
}

func fence(line string) bool { return strings.TrimRight(line, " \t\n") == "---" }

// Fault is why a front matter is not valid YAML.
type Fault struct {
	Line    int // of the file
	Message string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Message) }

// Decode reads a front matter without its fences. If it is not valid YAML, a
// fault says why; the node is nil if it could not be repaired either.
func Decode(front string) (*yaml.Node, *Fault) {
	root, err := decode(front)
	if err == nil {
		return root, nil
	}
	fault := newFault(err)
	if repaired := repair(front); repaired != front {
		if root, err := decode(repaired); err == nil {
			return root, fault
		}
	}
	return nil, fault
}

// Parse decodes the front matter of a file into a value and returns the body. A
// file without front matter is only a body.
func Parse(data []byte, into any) (body string, err error) {
	text := strings.ReplaceAll(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), "\r\n", "\n")
	front, body, _, err := Split(text)
	switch {
	case errors.Is(err, ErrNone):
		return text, nil
	case err != nil:
		return "", err
	}
	root, fault := Decode(front)
	switch {
	case root == nil:
		return "", fmt.Errorf("front matter: %w", fault)
	case root.Kind == 0: // empty
		return body, nil
	}
	if err := root.Decode(into); err != nil {
		return "", fmt.Errorf("front matter: %w", err)
	}
	return body, nil
}

// delimiter fences the front matter for the library. Its default, a line that
// is three dashes after trimming, would end at an indented one in a block; no
// text contains a NUL.
const delimiter = "---\x00"

func decode(front string) (root *yaml.Node, err error) {
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

var yamlLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^yaml: (?:unmarshal errors:\s+)?line (\d+): `)
})

// newFault extracts the line from the library's message. Line numbers of the
// front matter are one less than those of the file.
func newFault(err error) *Fault {
	text, line := err.Error(), 0
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if errors.Is(err, frontmatter.ErrNotFound) {
		text = "not found"
	}
	return &Fault{line + 1, strings.TrimPrefix(text, "yaml: ")}
}
