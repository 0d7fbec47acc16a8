package tools

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/textedit"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/output"
)

const (
	readLines    = 2000     // the default of limit
	readBytes    = 2 << 20  // of text in one result
	readAhead    = 64 << 20 // read after the last line shown, to count the rest
	maxImageSize = 5 << 20
)

//go:embed read_file.md
var readFileDoc string

type readFileArgs struct {
	FilePath string `json:"file_path"`
	Offset   int    `json:"offset,omitempty" jsonschema:"first line or page"`
	Limit    int    `json:"limit,omitempty" jsonschema:"default 2000 lines"`
}

// fileReader is what the tools that read files read with.
type fileReader struct {
	pdf PDFReader // may be nil
}

// ReadFile returns the tool read_file: the lines of a text file with their
// numbers, or an image.
func ReadFile() core.Tool { return fileReader{}.one() }

// one returns the tool that reads one file.
func (fr fileReader) one() core.Tool {
	tool := core.NewTool(core.ToolDefinition{
		Name:        "read_file",
		Description: strings.TrimSpace(readFileDoc),
		ReadOnly:    true,
		Repeatable:  true,
		Scopes:      []core.Scope{core.ScopeRead},
		Output:      core.OutputLimit{MaxChars: 50_000, Mode: core.HeadTail},
	}, func(_ context.Context, _ *core.Call, in readFileArgs) ([]core.Access, error) {
		return fileAccess(core.ScopeRead, in.FilePath, false), nil
	}, fr.read)
	return fileTool{Tool: tool, knows: func(args json.RawMessage, _ core.Result) []string { return filePath(args) }}
}

func (fr fileReader) read(ctx context.Context, call *core.Call, in readFileArgs) (core.Result, error) {
	switch {
	case in.FilePath == "":
		return invalid("file_path is empty. Give the path of a file.")
	case in.Offset < 0 || in.Limit < 0:
		return invalid("offset and limit cannot be negative. Offset counts lines from 1.")
	}
	files := call.Env.Files()
	info, err := files.Stat(ctx, in.FilePath)
	if errors.Is(err, fs.ErrNotExist) {
		return missing(ctx, call.Env, in.FilePath), nil
	}
	if err != nil {
		return failure("read", in.FilePath, err), nil
	}
	if info.IsDir() {
		return core.Failf(core.CodeIO, "%q is a directory. Use list_dir to list it.", in.FilePath), nil
	}
	if !info.Mode().IsRegular() {
		return core.Failf(core.CodeIO, "%q is %s, not a regular file. Use shell if you need it.", in.FilePath, special(info.Mode())), nil
	}
	f, err := files.Open(ctx, in.FilePath)
	if err != nil {
		return failure("read", in.FilePath, err), nil
	}
	defer f.Close()
	size := int(min(max(info.Size()+1, sniffLen), maxEditSize))
	var r io.Reader = contextReader{ctx, f}
	if strings.HasPrefix(in.FilePath, core.HandlePrefix) {
		r = output.PlainReader(r)
	}
	opened := bufio.NewReaderSize(r, size)
	if mark, _ := opened.Peek(len(pdfMark)); string(mark) == pdfMark && fr.pdf != nil {
		return fr.readPDF(ctx, opened, in)
	}
	return readOpened(opened, info.Size(), in), nil
}

// missing is the failure for a file that does not exist.
func missing(ctx context.Context, env core.Environment, path string) core.Result {
	if strings.HasPrefix(path, core.HandlePrefix) {
		return core.Failf(core.CodeNotFound, "The stored output %q does not exist or was removed. Run the tool again that produced it.", path)
	}
	near := nearNames(ctx, env, path)
	if len(near) == 0 {
		return core.Failf(core.CodeNotFound, "File not found: %q. Find the right path with glob or list_dir.", path)
	}
	return core.Failf(core.CodeNotFound, "File not found: %q. Did you mean %s?", path, strings.Join(near, ", "))
}

// readOpened reads the requested part of a file of the given size.
func readOpened(r *bufio.Reader, size int64, in readFileArgs) core.Result {
	head, err := r.Peek(r.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return failure("read", in.FilePath, err)
	}
	if mediaType, ok := imageType(head); ok {
		return readImage(r, in.FilePath, mediaType)
	}
	what, advice, encoding, ok := sniff(head)
	if !ok {
		return core.Failf(core.CodeIO, "%q is not a text file: it looks like %s (%s). %s", in.FilePath, what, byteSize(size), advice)
	}
	if len(head) == 0 {
		return core.TextResult("(The file is empty.)")
	}
	if !encoding.UTF8() {
		r = bufio.NewReader(encoding.Reader(r))
	}
	whole := ""
	if isNotebook(in.FilePath) && size <= maxEditSize {
		if n, ok := parseNotebook(encoding.Decode(head)); ok {
			whole = fmt.Sprintf("\n(A notebook with %s, shown as text; edit_file replaces text in a cell.)", count(len(n.Cells), "cell"))
			r = bufio.NewReader(strings.NewReader(n.String()))
		}
	}
	if mark, _ := r.Peek(len(textedit.BOM)); string(mark) == textedit.BOM {
		_, _ = r.Discard(len(mark)) // already peeked
	}
	p := page{first: max(in.Offset, 1), limit: in.Limit}
	if p.limit == 0 {
		p.limit = readLines
	}
	if err := p.read(r); err != nil {
		return failure("read", in.FilePath, err)
	}
	if len(p.ends) == 0 {
		return core.Failf(core.CodeValidation, "offset %d is past the end of %q, which has %s. Use an offset from 1 to %d.",
			in.Offset, in.FilePath, count(p.total, "line"), p.total)
	}
	text := p.String() + whole
	if !encoding.UTF8() {
		text += fmt.Sprintf("\n(The file is in %s; edits keep that.)", encoding)
	}
	return core.TextResult(text)
}

func readImage(r io.Reader, path, mediaType string) core.Result {
	data, err := io.ReadAll(io.LimitReader(r, maxImageSize+1))
	if err != nil {
		return failure("read", path, err)
	}
	if len(data) > maxImageSize {
		return core.Failf(core.CodeIO, "%q is an image (%s) of more than %s, too large to show. Scale it down with shell and read the copy.",
			path, mediaType, byteSize(maxImageSize))
	}
	return core.Result{Content: []model.Part{
		model.Text{Text: fmt.Sprintf("%s: %s, %s", path, mediaType, byteSize(int64(len(data))))},
		model.Image{MediaType: mediaType, Data: data, Bytes: len(data)},
	}}
}

// page is a range of a file's lines.
type page struct {
	first, limit int
	text         []byte
	ends         []int // where each line ends in text
	cut          bool  // the last line was cut at readBytes
	more         bool  // there are lines after the last
	total        int   // lines in the file, as far as counted
	counted      bool  // total is exact
}

// read fills the page, and counts the lines of the file up to readAhead.
func (p *page) read(r *bufio.Reader) error {
	for p.total < p.first-1 {
		if more, err := p.skipLine(r); err != nil || !more {
			p.counted = true
			return err
		}
	}
	for len(p.ends) < p.limit && !p.cut {
		more, err := p.readLine(r)
		if err != nil {
			return err
		}
		if !more {
			p.counted = true
			return nil
		}
	}
	return p.countRest(r)
}

func (p *page) skipLine(r *bufio.Reader) (bool, error) {
	return p.eachPiece(r, func([]byte) {})
}

func (p *page) readLine(r *bufio.Reader) (bool, error) {
	more, err := p.eachPiece(r, func(piece []byte) {
		room := readBytes - len(p.text)
		if len(piece) > room {
			piece, p.cut = piece[:max(room, 0)], true
		}
		p.text = append(p.text, piece...)
	})
	if more {
		p.ends = append(p.ends, len(p.text))
	}
	return more, err
}

// eachPiece passes the next line to fn in pieces, with its line feed. It reports
// whether there was a line.
func (p *page) eachPiece(r *bufio.Reader, fn func(piece []byte)) (bool, error) {
	for some := false; ; some = true {
		piece, err := r.ReadSlice('\n')
		fn(piece)
		switch {
		case err == nil:
			p.total++
			return true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			some = some || len(piece) > 0
			if some {
				p.total++
			}
			return some, nil
		default:
			return false, err
		}
	}
}

// countRest counts the lines after the page.
func (p *page) countRest(r *bufio.Reader) error {
	buf := make([]byte, 32<<10)
	last := byte('\n')
	for read := 0; read < readAhead; {
		n, err := r.Read(buf)
		if n > 0 {
			p.more = true
			p.total += bytes.Count(buf[:n], []byte{'\n'})
			last, read = buf[n-1], read+n
		}
		if errors.Is(err, io.EOF) {
			if last != '\n' {
				p.total++
			}
			p.counted = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// String returns the lines with their numbers, and a note if there are more.
func (p *page) String() string {
	last := p.first + len(p.ends) - 1
	width := len(strconv.Itoa(last))
	var out strings.Builder
	out.Grow(len(p.text) + len(p.ends)*(width+3) + 100)
	start := 0
	for i, end := range p.ends {
		line := bytes.TrimSuffix(bytes.TrimSuffix(p.text[start:end], []byte("\n")), []byte("\r"))
		if !utf8.Valid(line) {
			line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
		}
		number := strconv.Itoa(p.first + i)
		out.WriteString(strings.Repeat(" ", width-len(number)))
		out.WriteString(number)
		out.WriteString(" | ")
		out.Write(line)
		if i < len(p.ends)-1 {
			out.WriteByte('\n')
		}
		start = end
	}
	if p.cut {
		fmt.Fprintf(&out, "\n(line %d is truncated: the result is full)", last)
	}
	if p.more {
		plus := "+"
		if p.counted {
			plus = ""
		}
		fmt.Fprintf(&out, "\n(lines %d–%d of %d%s; use offset %d to continue)", p.first, last, p.total, plus, last+1)
	}
	return out.String()
}

// contextReader fails once ctx is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// byteSize formats a number of bytes.
func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return count(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// count formats a count: "1 line", "2 lines".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
