package tools_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

// TestReadPDF shows how pages are presented; core/pdftext tests how they are read.
func TestReadPDF(t *testing.T) {
	where := env.NewMemory("", map[string]string{"a.pdf": "%PDF-1.4\nthe document"})
	all := []string{"first", "", "third"}
	with := func(fail error, texts []string) core.Tool {
		set := tools.Builtin(tools.Options{PDF: func(_ context.Context, pdf io.Reader, first, limit, _ int) ([]string, int, error) {
			if data, err := io.ReadAll(pdf); string(data) != "%PDF-1.4\nthe document" || err != nil {
				t.Errorf("it was given %q, error %v", data, err)
			}
			from := min(first-1, len(texts))
			return texts[from:min(from+limit, len(texts))], len(texts), fail
		}})
		t.Cleanup(func() {
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
		list, err := set.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	check(t, with(nil, all), where, args{"file_path": "a.pdf"}, "", "[page 1 of 3]\nfirst\n\n[page 2 of 3]\n(no text: the page may be scanned)\n\n[page 3 of 3]\nthird")
	check(t, with(nil, all), where, args{"file_path": "a.pdf", "limit": 1}, "", "[page 1 of 3]\nfirst\n\n(page 1 of 3; use offset 2 to continue)")
	check(t, with(nil, all), where, args{"file_path": "a.pdf", "offset": 3, "limit": 9}, "", "[page 3 of 3]\nthird")
	checkHas(t, with(nil, all), where, args{"file_path": "a.pdf", "offset": 4}, core.CodeValidation, "has 3 pages", "from 1 to 3")
	checkHas(t, with(nil, []string{"", ""}), where, args{"file_path": "a.pdf"}, core.CodeIO, "no text on pages 1–2 of 2", "pdftoppm")
	checkHas(t, with(errors.New("the document is encrypted"), nil), where, args{"file_path": "a.pdf"}, core.CodeIO, `Cannot read "a.pdf": the document is encrypted.`)
	checkHas(t, tools.ReadFile(), where, args{"file_path": "a.pdf"}, core.CodeIO, "it looks like a PDF document", "pdftotext")
}
