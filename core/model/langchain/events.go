package langchain

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

// eventReader reads the data of server-sent events. Comments and the fields
// that the Chat Completions API does not use are skipped.
type eventReader struct {
	r       *bufio.Reader
	line    []byte // a line that did not fit the buffer of r
	data    []byte // of the event being read
	next1   []byte // a data line that belongs to the next event
	isError bool   // the last event was of type "error"
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10)}
}

// next returns the data of the next event, valid until the next call. It
// returns io.EOF at the end of the stream, also when an event is cut there.
func (e *eventReader) next() ([]byte, error) {
	e.isError = false
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
			e.isError = false
		case string(name) == "event":
			e.isError = string(value) == "error"
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
