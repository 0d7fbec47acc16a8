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
// complete log, after 0, is checked to be a valid sequence.
func records(ctx context.Context, path string, r io.Reader, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		b := batch{path: path, lines: newLineReader(r), after: after}
		var sequence event.Sequence
		for most := 16; !b.ended; most = min(2*most, maxBatch) {
			b.read(most)
			b.decode()
			for i, e := range b.events {
				if err := cmp.Or(ctx.Err(), b.errs[i]); err != nil {
					yield(event.Event{}, err)
					return
				}
				if after == 0 {
					if err := follows(&sequence, path, b.counts[i], e); err != nil {
						yield(event.Event{}, err)
						return
					}
				}
				if e.Seq > after && !yield(e, nil) {
					return
				}
			}
			if b.err != nil {
				yield(event.Event{}, b.err)
				return
			}
		}
	}
}

// Limits of a batch, the part of a log in memory.
const (
	maxBatch      = 256
	maxBatchBytes = 512 << 10 // plus a line
)

// batch is some records of a log, decoded in parallel: the user waits while a
// session of thousands of records opens.
type batch struct {
	path  string
	lines *lineReader
	after event.Seq

	count  int   // lines read from the log
	ended  bool  // there are no more lines
	err    error // why, unless it is the end of the log
	text   []byte
	ends   []int // of each line in text
	counts []int // number of each line in the log
	events []event.Event
	errs   []error
}

// read reads the next lines, skipping those up to after.
func (b *batch) read(most int) {
	b.text, b.ends, b.counts = b.text[:0], b.ends[:0], b.counts[:0]
	for len(b.ends) < most && len(b.text) < maxBatchBytes {
		line, err := b.lines.next()
		b.count++
		if err != nil {
			b.ended = true
			if !errors.Is(err, io.EOF) {
				b.err = fmt.Errorf("%s:%d: %w", b.path, b.count, err)
			}
			return
		}
		if seq, ok := quickSeq(line); ok && seq <= b.after {
			continue
		}
		b.text = append(b.text, line...)
		b.ends, b.counts = append(b.ends, len(b.text)), append(b.counts, b.count)
	}
}

func (b *batch) decode() {
	n := len(b.ends)
	b.events, b.errs = make([]event.Event, n), make([]error, n)
	one := func(i int) {
		from := 0
		if i > 0 {
			from = b.ends[i-1]
		}
		b.events[i], b.errs[i] = decode(b.path, b.counts[i], b.text[from:b.ends[i]])
	}
	workers := min(runtime.GOMAXPROCS(0), n/8)
	if workers < 2 {
		for i := range n {
			one(i)
		}
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				one(i)
			}
		})
	}
	wg.Wait()
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
