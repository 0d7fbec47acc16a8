package pdftext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
)

// The reasons why a document has no text.
var (
	errEncrypted = errors.New("the document is encrypted: decrypt it first, for example with qpdf --decrypt, if you have the password")
	errDamaged   = errors.New("the document is damaged: try to repair it, for example with qpdf or mutool clean")
)

// document is the text of some pages.
type document struct {
	Pages []string `json:"pages"`
	Total int      `json:"total"` // pages of the document
}

// read returns the text of pages. It may change data.
func read(data []byte, first, limit, maxBytes int) (doc document, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w (%v)", errDamaged, r)
		}
	}()
	data = normalize(data)
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword), err != nil && strings.Contains(err.Error(), "encrypt"):
		return doc, fmt.Errorf("%w (%w)", errEncrypted, err)
	case err != nil:
		return doc, fmt.Errorf("%w (%w)", errDamaged, err)
	}
	doc.Total = r.NumPage()
	if doc.Total <= 0 {
		return doc, fmt.Errorf("%w (it has no pages)", errDamaged)
	}
	size := 0
	for n := first; n <= doc.Total && len(doc.Pages) < limit && size < maxBytes; n++ {
		text := page(r, n)
		doc.Pages = append(doc.Pages, text)
		size += len(text)
	}
	return doc, nil
}

// maxPage limits the text of a page, in bytes.
const maxPage = 2 << 20

var errFull = errors.New("a page has too much text")

// normalize removes what surrounds a document, and gives it the header that the
// parser expects: others read all of that, too.
func normalize(data []byte) []byte {
	if i := bytes.Index(data[:min(len(data), 1024)], []byte("%PDF-")); i > 0 {
		data = data[i:]
	}
	if i := bytes.LastIndex(data, []byte("%%EOF")); i >= 0 {
		data = data[:i+len("%%EOF")]
	}
	if header := []byte("%PDF-1.7\n"); len(data) > len(header) && bytes.HasPrefix(data, header[:5]) {
		copy(data, header)
	}
	return data
}

// page returns the text of a page, as far as it can be read.
func page(r *pdf.Reader, n int) (text string) {
	p := r.Page(n)
	w := &writer{}
	defer func() {
		switch r := recover(); r {
		case nil:
		case errFull:
			text = w.String() + "\n(The rest of this page is left out.)"
		default:
			text = w.String() + "\n(The rest of this page is damaged.)"
		}
	}()
	content := interpreter{out: w, fonts: map[string]*font{}}
	content.run(p.V.Key("Contents"), p.Resources(), state{matrix: identity, scale: 1}, 0)
	return w.String()
}
