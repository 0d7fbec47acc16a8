package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

var (
	// ErrTooLong is the error of a line or an event that exceeds the limit.
	ErrTooLong = errors.New("an event exceeds the size limit")
	// ErrIncomplete is the error of a stream that ends within an event.
	ErrIncomplete = errors.New("the stream ended within an event")
)

// Event is one event of a stream.
type Event struct {
	Type string // empty if the stream names none, which the standard reads as "message"
	Data []byte // may be empty; valid until the next call of Next
}

// Reader reads the events of one stream.
type Reader struct {
	// LastEventID is what to send as Last-Event-ID to resume the stream. When a
	// stream is resumed, set it before the first call of Next.
	LastEventID string
	// Retry is the last reconnection time that the server asked for.
	Retry time.Duration
	// Complete, if not nil, makes up for servers that leave out the blank line:
	// a data line that follows complete data begins a new event.
	Complete func(data []byte) bool

	r       *bufio.Reader
	max     int64
	started bool   // the first line, with its byte order mark, has been read
	afterCR bool   // a line feed next belongs to the last line
	line    []byte // a line that did not fit the buffer of r

	event   Event
	hasData bool
	id      string // LastEventID once the event is complete
	ahead   []byte // a data line of the next event
	types   []string
}

// NewReader returns a Reader whose lines and events are limited to maxEvent
// bytes each.
func NewReader(r io.Reader, maxEvent int64) *Reader {
	const buffer = 32 << 10
	return &Reader{r: bufio.NewReaderSize(r, buffer), max: maxEvent}
}

// Next returns the next event that has data, even if that is empty. The error
// is io.EOF at the end of the stream. If the stream ends within an event, Next
// returns what there is of it with [ErrIncomplete]; the standard discards it.
func (r *Reader) Next() (Event, error) {
	if !r.started {
		r.id = r.LastEventID
	}
	r.event = Event{Data: append(r.event.Data[:0], r.ahead...)}
	r.hasData, r.ahead = len(r.ahead) > 0, r.ahead[:0]
	for {
		line, err := r.readLine()
		switch {
		case errors.Is(err, io.EOF) && r.hasData:
			return r.event, ErrIncomplete
		case err != nil:
			return Event{}, err
		case len(line) == 0:
			r.LastEventID = r.id
			if r.hasData {
				return r.event, nil
			}
			r.event.Type = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		if string(name) != "data" {
			r.setField(string(name), value)
			continue
		}
		if r.hasData && r.Complete != nil && r.Complete(r.event.Data) {
			r.ahead = append(r.ahead, value...)
			return r.event, nil
		}
		if err := r.appendData(value); err != nil {
			return Event{}, err
		}
	}
}

func (r *Reader) appendData(value []byte) error {
	if r.hasData {
		r.event.Data = append(r.event.Data, '\n')
	}
	r.event.Data = append(r.event.Data, value...)
	r.hasData = true
	if int64(len(r.event.Data)) > r.max {
		return r.tooLong()
	}
	return nil
}

// setField handles the fields other than data. The standard ignores what it
// does not define, an ID with a NUL, and a retry of anything but digits.
func (r *Reader) setField(name string, value []byte) {
	switch name {
	case "event":
		r.event.Type = r.typeName(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.Retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// typeName returns value as a string, without an allocation if the type has
// been seen before: most streams have few.
func (r *Reader) typeName(value []byte) string {
	const maxTypes = 32
	for _, t := range r.types {
		if t == string(value) {
			return t
		}
	}
	t := string(value)
	if len(r.types) < maxTypes {
		r.types = append(r.types, t)
	}
	return t
}

// readLine returns the next line without its end, valid until the next call. It
// returns the line after a CR at once, without waiting for an LF.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && len(r.line) > 0 {
				return r.firstLine(r.line), nil
			}
			return nil, err
		}
		buf, _ := r.r.Peek(r.r.Buffered())
		if r.afterCR && buf[0] == '\n' {
			buf = buf[1:]
			_, _ = r.r.Discard(1)
		}
		r.afterCR = false
		end := lineEnd(buf)
		if int64(len(r.line)+end) > r.max {
			return nil, r.tooLong()
		}
		if end == len(buf) {
			r.line = append(r.line, buf...)
			_, _ = r.r.Discard(len(buf))
			continue
		}
		r.afterCR = buf[end] == '\r'
		_, _ = r.r.Discard(end + 1)
		if len(r.line) == 0 {
			return r.firstLine(buf[:end]), nil
		}
		r.line = append(r.line, buf[:end]...)
		return r.firstLine(r.line), nil
	}
}

// lineEnd returns the index of the first CR or LF, or the length of b.
func lineEnd(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, '\r'); i >= 0 {
		b = b[:i]
	}
	return len(b)
}

// firstLine strips the byte order mark from the first line.
func (r *Reader) firstLine(line []byte) []byte {
	if !r.started {
		r.started = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

func (r *Reader) tooLong() error {
	return fmt.Errorf("%w of %d bytes", ErrTooLong, r.max)
}
