package jsonrpc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxHeader bounds the header of a message, in bytes.
const maxHeader = 8 << 10

// readFramed reads a message with a header. Long is never set: one that is too long
// is an error.
func readFramed(in *bufio.Reader) (text []byte, long bool, err error) {
	length, read := -1, 0
	for {
		line, err := in.ReadSlice('\n')
		if read += len(line); err != nil || read > maxHeader {
			if errors.Is(err, io.EOF) && read == 0 {
				return nil, false, io.EOF
			}
			return nil, false, fmt.Errorf("expected the header of a message, not %.100q", line)
		}
		name, value, ok := strings.Cut(strings.TrimSpace(string(line)), ":")
		switch {
		case name == "" && !ok && length >= 0: // the empty line
			text = make([]byte, length)
			_, err := io.ReadFull(in, text)
			return text, false, err
		case !ok:
			return nil, false, fmt.Errorf("expected the header of a message, not %.100q", line)
		case !strings.EqualFold(name, "Content-Length"):
			continue
		}
		length, err = strconv.Atoi(strings.TrimSpace(value))
		if err != nil || length < 0 || length > MaxLine {
			return nil, false, fmt.Errorf("invalid Content-Length %.40q: expected at most %d MiB", value, MaxLine>>20)
		}
	}
}
