package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/seed-009c0928/agent/core/event"
)

// records decodes the events of a log with a number greater than after.
func records(ctx context.Context, path string, r io.Reader, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		lines := newLineReader(r)
		for n := 1; ; n++ {
			if err := ctx.Err(); err != nil {
				yield(event.Event{}, err)
				return
			}
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(event.Event{}, fmt.Errorf("%s:%d: %w", path, n, err))
				return
			}
			if seq, ok := quickSeq(line); ok && seq <= after {
				continue
			}
			e, err := decode(path, n, line)
			if err == nil && e.Seq <= after {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func decode(path string, n int, line []byte) (event.Event, error) {
	var e event.Event
	if err := e.UnmarshalJSON(line); err != nil {
		return event.Event{}, &CorruptError{File: path, Line: n, Err: err}
	}
	if u, ok := e.Body.(event.Unknown); ok && e.Required {
		return event.Event{}, &UnknownRecordError{File: path, Line: n, Type: u.Kind, Version: e.V}
	}
	return e, nil
}

// quickSeq reads the number of a record in the form that Append writes, so
// that skipping a record costs no decoding.
func quickSeq(line []byte) (event.Seq, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"v":`+strconv.Itoa(event.Version)+`,"seq":`))
	if !ok {
		return 0, false
	}
	var seq event.Seq
	for i, c := range rest {
		if c < '0' || c > '9' {
			return seq, i > 0 && c == ','
		}
		seq = seq*10 + event.Seq(c-'0')
	}
	return 0, false
}

// lineReader reads lines of up to limit bytes. It holds one of them.
type lineReader struct {
	r     *bufio.Reader
	long  []byte // a line that is longer than r's buffer
	limit int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: maxLine}
}

// next returns the next line without its end, valid until the next call. The
// error is io.EOF at the end; what stands after the last line end is not a
// line.
func (l *lineReader) next() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], nil
	}
	for l.long = l.long[:0]; ; {
		l.long = append(l.long, part...)
		if len(l.long) > l.limit {
			return nil, fmt.Errorf("%w: the line is longer than %d bytes", ErrTooLarge, l.limit)
		}
		if err == nil {
			return l.long[:len(l.long)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		part, err = l.r.ReadSlice('\n')
	}
}
