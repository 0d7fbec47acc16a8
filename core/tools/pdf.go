package tools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// PDFReader returns the text of at most limit pages of a PDF document, the first of
// which is counted from 1, and the number of all pages. It stops after the page with
// which the text has maxBytes. Its errors say what to do.
type PDFReader func(ctx context.Context, pdf io.Reader, first, limit, maxBytes int) (pages []string, total int, err error)

const (
	pdfMark  = "%PDF-"
	pdfBytes = 40_000 // of text in one result
	pdfPages = 500
)

// readPDF reads pages: offset and limit count them.
func (fr fileReader) readPDF(ctx context.Context, r io.Reader, in readFileArgs) (core.Result, error) {
	first := max(in.Offset, 1)
	pages, total, err := fr.pdf(ctx, r, first, min(cmp.Or(in.Limit, pdfPages), pdfPages), pdfBytes)
	switch {
	case ctx.Err() != nil:
		return failure("read", in.FilePath, ctx.Err()), nil
	case err != nil:
		return failure("read", in.FilePath, err), nil
	case len(pages) == 0:
		return core.Failf(core.CodeValidation, "offset %d is past the end of %q, which has %s. Use an offset from 1 to %d.",
			first, in.FilePath, count(total, "page"), total), nil
	case strings.Join(pages, "") == "":
		return core.Failf(core.CodeIO, "%q has no text on %s: it may be scanned. Convert pages to images with shell, for example with pdftoppm -r 100 -png, and read those.",
			in.FilePath, pageRange(first, len(pages), total)), nil
	}
	var b strings.Builder
	for i, text := range pages {
		fmt.Fprintf(&b, "[page %d of %d]\n%s\n\n", first+i, total, cmp.Or(text, "(no text: the page may be scanned)"))
	}
	if last := first + len(pages) - 1; last < total {
		fmt.Fprintf(&b, "(%s; use offset %d to continue)", pageRange(first, len(pages), total), last+1)
	}
	return core.TextResult(strings.TrimSpace(b.String())), nil
}

func pageRange(first, n, total int) string {
	if n == 1 {
		return fmt.Sprintf("page %d of %d", first, total)
	}
	return fmt.Sprintf("pages %d–%d of %d", first, first+n-1, total)
}
