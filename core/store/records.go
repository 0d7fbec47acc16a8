package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"github.com/seed-009c0928/agent/core/event"
)

// Read yields the complete records of a session in dir after the given one,
// oldest first, without locking it: it may be in use. Errors are those of
// [Journal.Replay], and an fs.ErrNotExist if there is no such session.
func Read(ctx context.Context, dir, id string, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := CheckID(id); err != nil {
			yield(event.Event{}, err)
			return
		}
		f, err := os.Open(filepath.Join(dir, id+fileSuffix))
		if err != nil {
			yield(event.Event{}, fmt.Errorf("read session %s: %w", id, err))
			return
		}
		defer f.Close()
		for e, err := range records(ctx, f.Name(), f, after) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Scan yields the records of a session whose type is wanted, in their order, and decodes
// no others. The sequence is not checked. Errors are those of [Read].
func Scan(ctx context.Context, dir, id string, wanted func(kind string) bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := CheckID(id); err != nil {
			yield(event.Event{}, err)
			return
		}
		f, err := os.Open(filepath.Join(dir, id+fileSuffix))
		if err != nil {
			yield(event.Event{}, fmt.Errorf("read session %s: %w", id, err))
			return
		}
		defer f.Close()
		lines := newLineReader(f)
		for n := 1; ; n++ {
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err = cmp.Or(ctx.Err(), err); err != nil {
				yield(event.Event{}, fmt.Errorf("%s:%d: %w", f.Name(), n, err))
				return
			}
			if kind, ok := quickType(line); ok && !wanted(string(kind)) {
				continue
			}
			e, err := decode(f.Name(), n, line)
			if err == nil && !wanted(e.Body.Type()) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// records decodes the events of a log with a number greater than after. Only a
// complete log, after 0, is checked to be a valid sequence. While the caller takes some
// records, the next ones are decoded.
func records(ctx context.Context, path string, r io.Reader, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		log := logReader{path: path, lines: newLineReader(r), after: after}
		var sequence event.Sequence
		take := func(r record) bool {
			err := cmp.Or(ctx.Err(), r.err)
			if err == nil && after == 0 {
				err = follows(&sequence, path, r.line, r.event)
			}
			if err != nil {
				yield(event.Event{}, err)
				return false
			}
			return r.event.Seq <= after || yield(r.event, nil)
		}
		var ahead sync.WaitGroup
		defer ahead.Wait()
		b, next := &batch{}, &batch{}
		log.read(b, minBatch)
		for most := 2 * minBatch; ; most = min(2*most, maxBatch) {
			if !b.last {
				ahead.Go(func() { log.read(next, most) })
			}
			if !b.each(take) || b.last {
				return
			}
			ahead.Wait()
			b, next = next, b
		}
	}
}

// record is a record of a log, or why it cannot be read.
type record struct {
	event event.Event
	line  int // its number, from 1
	err   error
}

// Limits of a batch.
const (
	minBatch      = 16
	maxBatch      = 256
	maxBatchBytes = 512 << 10 // plus a line
)

// batch is some records of a log, decoded in parallel: the user waits while a session of
// thousands of records opens. It is used again for later ones.
type batch struct {
	text    []byte
	ends    []int // of each record in text
	records []record
	last    bool // nothing follows
}

// each calls f for the records until it returns false.
func (b *batch) each(f func(record) bool) bool {
	for i := range b.records {
		if !f(b.records[i]) {
			return false
		}
	}
	return true
}

// logReader reads a log in batches.
type logReader struct {
	path  string
	lines *lineReader
	after event.Seq
	count int // lines read
}

// read reads the next records into a batch, without those up to after.
func (l *logReader) read(b *batch, most int) {
	clear(b.records)
	b.text, b.ends, b.records = b.text[:0], b.ends[:0], b.records[:0]
	for len(b.ends) < most && len(b.text) < maxBatchBytes {
		line, err := l.lines.next()
		l.count++
		if err != nil {
			b.last = true
			b.decode(l.path)
			if !errors.Is(err, io.EOF) {
				b.records = append(b.records, record{line: l.count, err: fmt.Errorf("%s:%d: %w", l.path, l.count, err)})
			}
			return
		}
		if seq, ok := quickSeq(line); ok && seq <= l.after {
			continue
		}
		b.text = append(b.text, line...)
		b.ends, b.records = append(b.ends, len(b.text)), append(b.records, record{line: l.count})
	}
	b.decode(l.path)
}

// decode decodes the records, an equal part of them on each processor.
func (b *batch) decode(path string) {
	n := len(b.ends)
	some := func(from, to int) {
		at := 0
		if from > 0 {
			at = b.ends[from-1]
		}
		for i := from; i < to; i++ {
			r := &b.records[i]
			r.event, r.err = decode(path, r.line, b.text[at:b.ends[i]])
			at = b.ends[i]
		}
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), n/8))
	var others sync.WaitGroup
	for w := 1; w < workers; w++ {
		others.Go(func() { some(w*n/workers, (w+1)*n/workers) })
	}
	some(0, n/workers)
	others.Wait()
}

// follows checks that an event can follow the earlier ones.
func follows(sequence *event.Sequence, path string, n int, e event.Event) error {
	if err := sequence.Next(e); err != nil {
		return &CorruptError{File: path, Line: n, Err: err}
	}
	return nil
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

// quickSeq reads the number of a record in the form that Append writes, to skip
// records without decoding.
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

// quickType reads the type of a record in the form that Append writes, to skip
// records without decoding. No nested value precedes that member, and within a
// string its quotes would be escaped.
func quickType(line []byte) (kind []byte, ok bool) {
	if _, known := quickSeq(line); !known {
		return nil, false
	}
	_, rest, found := bytes.Cut(line, []byte(`,"type":"`))
	if !found {
		return nil, false
	}
	kind, _, found = bytes.Cut(rest, []byte{'"'})
	return kind, found
}

// lineReader reads lines of up to limit bytes. It holds one of them.
type lineReader struct {
	r     *bufio.Reader
	long  []byte // a line that is longer than r's buffer
	limit int
}

func newLineReader(r io.Reader) *lineReader { return newLineReaderSize(r, 64<<10) }

// newLineReaderSize returns a lineReader that reads so many bytes at a time.
func newLineReaderSize(r io.Reader, size int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, size), limit: maxLine}
}

// reset makes it read from r.
func (l *lineReader) reset(r io.Reader) { l.r.Reset(r) }

// next returns the next line without its end, valid until the next call. The
// error is io.EOF at the end; text after the last line end is not a line.
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
