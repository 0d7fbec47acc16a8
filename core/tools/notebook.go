package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core/internal/textedit"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/output"
)

// maxCellOutput is how many characters of one output of a cell are shown.
const maxCellOutput = 2000

// notebook is a Jupyter notebook, as far as it is shown.
type notebook struct {
	Cells []struct {
		Type    string       `json:"cell_type"`
		Source  multiline    `json:"source"`
		Outputs []cellOutput `json:"outputs"`
	} `json:"cells"`
}

type cellOutput struct {
	Type      string                     `json:"output_type"`
	Text      multiline                  `json:"text"` // of a stream
	Data      map[string]json.RawMessage `json:"data"` // by media type
	Error     string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// multiline is a text, or the list of its lines with their line feeds.
type multiline string

// UnmarshalJSON implements [json.Unmarshaler].
func (m *multiline) UnmarshalJSON(data []byte) error {
	var lines []string
	if json.Unmarshal(data, &lines) == nil {
		*m = multiline(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(data, (*string)(m))
}

func isNotebook(name string) bool { return strings.EqualFold(path.Ext(name), ".ipynb") }

// parseNotebook returns the notebook that a text is.
func parseNotebook(text []byte) (*notebook, bool) {
	var n notebook
	if json.Unmarshal(text, &n) != nil || n.Cells == nil {
		return nil, false
	}
	return &n, true
}

// String returns the cells as text, with short outputs.
func (n *notebook) String() string {
	var b strings.Builder
	for i, c := range n.Cells {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[cell %d: %s]\n", i+1, c.Type)
		if c.Source != "" {
			b.WriteString(strings.TrimSuffix(string(c.Source), "\n") + "\n")
		}
		for _, o := range c.Outputs {
			fmt.Fprintf(&b, "[output of cell %d]\n%s\n", i+1, strings.TrimSuffix(clip(o.String(), 0, maxCellOutput), "\n"))
		}
	}
	return b.String()
}

// String returns an output as text. Other media are only named.
func (o cellOutput) String() string {
	if o.Error != "" {
		return output.Plain(strings.Join(append([]string{o.Error + ": " + o.Value}, o.Traceback...), "\n"))
	}
	text := output.Plain(string(o.Text))
	var plain multiline
	if json.Unmarshal(o.Data["text/plain"], &plain) == nil {
		text += output.Plain(string(plain))
	}
	for _, media := range []string{"image/png", "image/jpeg", "image/gif", "image/svg+xml", "text/html", "application/pdf"} {
		if data, ok := o.Data[media]; ok {
			text = strings.TrimSuffix(text, "\n") + fmt.Sprintf("\n(%s, %s, not shown)", media, byteSize(int64(len(data))))
		}
	}
	return strings.TrimPrefix(text, "\n")
}

// replaceInNotebook replaces text in the source of cells. Everything else in the
// file stays as it is. It reports false if no cell has the text.
func replaceInNotebook(text, from, to string, opts textedit.Options) (edited, report string, found bool, err error) {
	n, ok := parseNotebook([]byte(text))
	if !ok {
		return "", "", false, nil
	}
	exact := false
	for _, c := range n.Cells {
		exact = exact || strings.Contains(string(c.Source), from)
	}
	var cells []string
	edited = text
	for i, c := range n.Cells {
		source := string(c.Source)
		if exact && !strings.Contains(source, from) {
			continue
		}
		r, err := textedit.Parse(source).Replace(from, to, opts)
		if err != nil {
			if exact {
				return "", "", true, fmt.Errorf("cell %d: %w", i+1, err)
			}
			continue
		}
		if edited, err = setSource(edited, i, r.Text); err != nil {
			return "", "", true, err
		}
		cells = append(cells, fmt.Sprintf("cell %d: %s", i+1, r))
	}
	if len(cells) > 1 && !opts.All {
		return "", "", true, fmt.Errorf("old_string is not unique: it is in %d cells. Add neighbouring lines to make it unique, or set replace_all", len(cells))
	}
	return edited, strings.Join(cells, " "), len(cells) > 0, nil
}

var (
	cellsIndent  = lazy.Regexp(`\n([ \t]*)"cells"\s*:`)
	sourceIndent = lazy.Regexp(`\n([ \t]*)"source"\s*:`)
)

// setSource sets the source of a cell, written as notebooks are: a list of lines.
func setSource(text string, cell int, source string) (string, error) {
	doc, err := jsonpos.Parse("the notebook", []byte(text))
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(source, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var value bytes.Buffer
	enc := json.NewEncoder(&value)
	enc.SetEscapeHTML(false)
	if unit, prefix := cellsIndent().FindStringSubmatch(text), sourceIndent().FindStringSubmatch(text); unit != nil && prefix != nil {
		enc.SetIndent(prefix[1], unit[1])
	}
	if err := enc.Encode(lines); err != nil {
		return "", err
	}
	edited := doc.Set([]string{"cells", strconv.Itoa(cell), "source"}, strings.TrimSpace(value.String()))
	if !json.Valid(edited) {
		return "", errors.New("the notebook cannot be edited in place: use shell")
	}
	return string(edited), nil
}
