package tools

import (
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/charset"
	"github.com/seed-009c0928/agent/core/internal/textedit"
)

// document is a text file as the tools change it: in UTF-8, and written back in
// its own encoding.
type document struct {
	text     string
	encoding charset.Encoding
}

// newDocument returns the text of a file, or a failure if it cannot be edited.
func newDocument(path string, data []byte) (document, *core.Result) {
	what, _, e, ok := sniff(data)
	var r core.Result
	switch {
	case !ok:
		r = core.Failf(core.CodeIO, "Cannot edit %q: it is not a text file; it looks like %s. Use shell if you need to change it.", path, what)
	case !e.Lossless(data):
		r = core.Failf(core.CodeIO, "Cannot edit %q: it looks like %s, but writing it back would change other bytes. Convert it to UTF-8 with shell first, for example with iconv.", path, e)
	default:
		return document{string(e.Decode(data)), e}, nil
	}
	return document{}, &r
}

// encode returns a new text as it is written.
func (d document) encode(text string) ([]byte, error) {
	data, err := d.encoding.Encode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w, the file's encoding: write it in another way, or convert the file to UTF-8 with shell first", err)
	}
	return data, nil
}

// notes tells the model how the text is stored, unless it is as usual.
func (d document) notes() []string {
	if d.encoding.UTF8() {
		return nil
	}
	return []string{"kept the file's encoding, " + d.encoding.String()}
}

// keepStyle gives the new content of a file the encoding, the byte order mark
// and the line endings of the old one, if the model could not know of them.
func keepStyle(old []byte, content string) (kept []byte, notes []string, err error) {
	d, refusal := newDocument("", old)
	if refusal != nil {
		return []byte(content), nil, nil
	}
	t := textedit.Parse(d.text)
	text, changed := t.Native(content)
	if changed {
		notes = append(notes, "kept the file's line endings, which are not LF")
	}
	if t.BOM && !strings.HasPrefix(text, textedit.BOM) {
		text = textedit.BOM + text
		notes = append(notes, "kept the file's byte order mark")
	}
	kept, err = d.encode(text)
	return kept, append(notes, d.notes()...), err
}
