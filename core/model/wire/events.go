package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line of a stream, and an answer that is not one.
const maxLine = 64 << 20

var errLineTooLong = fmt.Errorf("a line is longer than %d MiB", maxLine>>20)

// eventReader reads server-sent events. Comments and the fields that no service
// uses are skipped. See https://html.spec.whatwg.org/multipage/server-sent-events.html.
type eventReader struct {
	r     *bufio.Reader
	line  []byte // a line that did not fit the buffer of r
	data  []byte // of the event being read
	next1 []byte // a data line that belongs to the next event
	kind  string // type of the event being read; empty where it has none
	kinds []string
}

func newEventReader(r io.Reader) *eventReader {
	const fewKinds = 32
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), kinds: make([]string, 0, fewKinds)}
}

// next returns the data of the next event, valid until the next call. It
// returns io.EOF at the end of the stream, also when an event is cut there.
func (e *eventReader) next() ([]byte, error) {
	e.kind = ""
	e.data = append(e.data[:0], e.next1...)
	e.next1 = e.next1[:0]
	for {
		line, err := e.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if errors.Is(err, io.EOF) && e.complete() {
				return e.data, nil
			}
			return nil, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && len(e.data) > 0:
			return e.data, nil
		case len(line) == 0: // an event without data is none
			e.kind = ""
		case string(name) == "event":
			e.setKind(value)
		case string(name) != "data":
		case len(e.data) == 0:
			e.data = append(e.data, value...)
		case e.complete(): // some servers leave out the blank line
			e.next1 = append(e.next1, value...)
			return e.data, nil
		default:
			e.data = append(append(e.data, '\n'), value...)
			if len(e.data) > maxLine {
				return nil, errLineTooLong
			}
		}
	}
}

// setKind keeps the type of an event. The types of a stream are few: those seen
// are not made anew.
func (e *eventReader) setKind(value []byte) {
	for _, k := range e.kinds {
		if k == string(value) {
			e.kind = k
			return
		}
	}
	e.kind = string(value)
	if len(e.kinds) < cap(e.kinds) {
		e.kinds = append(e.kinds, e.kind)
	}
}

func (e *eventReader) complete() bool {
	return string(e.data) == "[DONE]" || json.Valid(e.data)
}

// readLine returns the next line without its end, valid until the next call.
func (e *eventReader) readLine() ([]byte, error) {
	line, err := e.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		e.line = e.line[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			if e.line = append(e.line, line...); len(e.line) > maxLine {
				return nil, errLineTooLong
			}
			line, err = e.r.ReadSlice('\n')
		}
		e.line = append(e.line, line...)
		line = e.line
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), err
}
