package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/charset"
	"github.com/seed-009c0928/agent/core/internal/textedit"
)

var errBinary = errors.New("binary file")

// fileSearcher searches files one after another, reusing a buffer.
type fileSearcher struct {
	query *grepQuery
	lines *lineScanner
	most  int // maximum size of a file
	part  int // size of the parts in which a file is searched, if it can be
	buf   []byte
}

// grepPart is less than a processor's cache, and more than sniffLen.
const grepPart = 128 << 10

func newFileSearcher(q *grepQuery, most int) *fileSearcher {
	lines := q.matcher.scanner()
	lines.anywhere = q.mode != modeContent
	return &fileSearcher{query: q, lines: lines, most: most, part: grepPart}
}

func (s *fileSearcher) search(ctx context.Context, files core.FS, name string) (grepFile, error) {
	if err := ctx.Err(); err != nil {
		return grepFile{}, err
	}
	f, err := files.Open(ctx, name)
	if err != nil {
		return grepFile{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return grepFile{}, err
	}
	var from io.Reader = f
	if size := info.Size(); size > int64(s.part) && size <= int64(s.most) && s.query.context == 0 {
		file, err := s.searchParts(ctx, f, int(size))
		if !errors.Is(err, errWhole) {
			return file, err
		}
		from = io.NewSectionReader(f, 0, math.MaxInt64)
	}
	text, err := s.load(ctx, from, info.Size())
	if err != nil {
		return grepFile{}, err
	}
	return s.findIn(ctx, text)
}

// errWhole says that a file cannot be searched in parts.
var errWhole = errors.New("the whole file is needed")

// searchParts searches a file in parts that end with a line. They stay in the
// processor's cache, and memory does not depend on the file's size. Only a file that
// is UTF-8 can be searched in this way.
func (s *fileSearcher) searchParts(ctx context.Context, f io.Reader, size int) (grepFile, error) {
	var file grepFile
	lines := lineCollector{number: 1}
	s.grow(s.part)
	buf := s.buf[:s.part]
	enough := false // the rest decides only about the encoding
	for have, total := 0, 0; ; {
		n, err := f.Read(buf[have:])
		have, total = have+n, total+n
		last := errors.Is(err, io.EOF) || total == size
		switch {
		case err != nil && !last:
			return grepFile{}, err
		case ctx.Err() != nil:
			return grepFile{}, ctx.Err()
		case total > s.most:
			return grepFile{}, errWhole
		case have < len(buf) && !last:
			continue
		}
		end := have
		if !last {
			if end = bytes.LastIndexByte(buf, '\n') + 1; end == 0 { // a long line
				s.grow(2 * len(buf))
				buf = s.buf
				continue
			}
		}
		text, before := buf[:end], total-have
		if !validUTF8(text) || before < sniffLen && bytes.IndexByte(text, 0) >= 0 {
			return grepFile{}, errWhole
		}
		if !enough {
			enough = s.find(ctx, plain(text, before == 0), &file, &lines)
			if s.query.mode == modeContent {
				lines.endText()
			}
		}
		if last {
			file.lines = lines.lines
			return file, ctx.Err()
		}
		have = copy(buf, buf[end:have])
	}
}

// plain returns a text without what does not count in it; first says that a file
// begins with it.
func plain(text []byte, first bool) []byte {
	if bytes.IndexByte(text, '\r') >= 0 {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	if first {
		text = bytes.TrimPrefix(text, []byte(textedit.BOM))
	}
	return text
}

// searchText searches a file's content, of which the end may be cut off.
func (s *fileSearcher) searchText(ctx context.Context, text []byte, cut bool) (grepFile, error) {
	if cut || len(text) > s.most {
		if head := text[:min(len(text), sniffLen)]; bytes.IndexByte(head, 0) >= 0 {
			if _, ok := charset.Detect(head); !ok {
				return grepFile{}, errBinary
			}
		}
		return grepFile{}, core.ErrTooLarge
	}
	return s.findIn(ctx, text)
}

// findIn searches the whole content of a file, in whatever encoding it is.
func (s *fileSearcher) findIn(ctx context.Context, text []byte) (grepFile, error) {
	if s.lines.absent(text) {
		return grepFile{}, ctx.Err()
	}
	var encoding charset.Encoding
	if !validUTF8(text) || bytes.IndexByte(text[:min(len(text), sniffLen)], 0) >= 0 {
		var ok bool
		if encoding, ok = charset.Detect(text); !ok {
			return grepFile{}, errBinary
		}
		text = encoding.Decode(text)
	}
	file := grepFile{encoding: encoding}
	lines := lineCollector{context: s.query.context, number: 1}
	s.find(ctx, plain(text, true), &file, &lines)
	lines.finish()
	file.lines = lines.lines
	return file, ctx.Err()
}

// grow makes room for more in the buffer.
func (s *fileSearcher) grow(size int) {
	if size > len(s.buf) {
		grown := make([]byte, max(size, 2*len(s.buf), 64<<10))
		copy(grown, s.buf)
		s.buf = grown
	}
}

// load reads a text file into the buffer.
func (s *fileSearcher) load(ctx context.Context, f io.Reader, fileSize int64) ([]byte, error) {
	size := int(min(fileSize, int64(s.most)+1))
	s.grow(max(size, 1))
	for n, sniffed := 0, false; ; {
		m, err := f.Read(s.buf[n:])
		n += m
		end := errors.Is(err, io.EOF) || n > 0 && n == size // size is 0 in /proc
		if !sniffed && (end || n >= sniffLen) {
			sniffed = true
			head := s.buf[:min(n, sniffLen)]
			if bytes.IndexByte(head, 0) >= 0 {
				if _, ok := charset.Detect(head); !ok {
					return nil, errBinary
				}
			}
		}
		switch {
		case n > s.most, sniffed && size > s.most:
			return nil, core.ErrTooLarge
		case end:
			return s.buf[:n], nil
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case n == len(s.buf):
			s.grow(2 * n)
		}
	}
}

// find collects the matching lines of a text, as many as the query needs, and
// reports whether these are enough. Another text may follow.
func (s *fileSearcher) find(ctx context.Context, text []byte, file *grepFile, lines *lineCollector) (enough bool) {
	lines.text, lines.pos = text, 0
	for m := range s.lines.all(text) {
		file.matches++
		if s.query.mode == modeFiles {
			return true
		}
		if s.query.mode == modeContent {
			lines.add(m)
			if file.matches > s.query.max { // one more, to know that there are more
				return true
			}
		}
		if ctx.Err() != nil {
			return true
		}
	}
	return false
}

// lineCollector turns matches into lines with numbers and context.
type lineCollector struct {
	text    []byte
	context int
	lines   []grepLine
	pos     int // start of the line after the last one taken
	number  int // of that line
	after   int // lines of context still needed after the last match
}

// add adds a match and the context before it.
func (c *lineCollector) add(m lineMatch) {
	c.takeAfter(m.start)
	start := m.start
	for n := 0; n < c.context && start > c.pos; n++ {
		start = bytes.LastIndexByte(c.text[:start-1], '\n') + 1
	}
	c.number += bytes.Count(c.text[c.pos:start], []byte{'\n'})
	c.pos = start
	for c.pos < m.start {
		c.take(c.lineEnd(), 0, false)
	}
	c.take(m.end, m.at-m.start, true)
	c.after = c.context
}

// finish adds the context after the last match.
func (c *lineCollector) finish() { c.takeAfter(len(c.text)) }

// endText counts the lines of a text that another one follows.
func (c *lineCollector) endText() {
	c.number += bytes.Count(c.text[c.pos:], []byte{'\n'})
}

// takeAfter adds the context after the last match, up to limit.
func (c *lineCollector) takeAfter(limit int) {
	for ; c.after > 0 && c.pos < limit; c.after-- {
		c.take(c.lineEnd(), 0, false)
	}
}

func (c *lineCollector) lineEnd() int {
	if n := bytes.IndexByte(c.text[c.pos:], '\n'); n >= 0 {
		return c.pos + n
	}
	return len(c.text)
}

// take adds the line from pos to end, clipped around at.
func (c *lineCollector) take(end, at int, match bool) {
	c.lines = append(c.lines, grepLine{number: c.number, text: clip(string(c.text[c.pos:end]), at, grepLineChars), match: match})
	c.pos = min(end+1, len(c.text))
	c.number++
}
