package charset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// Encoding is how a text is stored. The zero value is UTF-8, in which invalid
// bytes are tolerated. A byte order mark is part of the text: U+FEFF.
type Encoding struct {
	name  string
	codec encoding.Encoding // nil = UTF-8
}

// String returns the name.
func (e Encoding) String() string {
	if e.UTF8() {
		return "UTF-8"
	}
	return e.name
}

// UTF8 reports whether text needs no conversion.
func (e Encoding) UTF8() bool { return e.codec == nil }

// Reader returns what r has, in UTF-8.
func (e Encoding) Reader(r io.Reader) io.Reader {
	if e.UTF8() {
		return r
	}
	return transform.NewReader(r, e.codec.NewDecoder())
}

// Decode returns data in UTF-8; what is invalid becomes U+FFFD, except in UTF-8
// itself, which is returned as it is.
func (e Encoding) Decode(data []byte) []byte {
	if e.UTF8() {
		return data
	}
	text, err := e.codec.NewDecoder().Bytes(data)
	if err != nil {
		return bytes.ToValidUTF8(data, []byte("\uFFFD")) // decoders replace, they do not fail
	}
	return text
}

// Encode is the reverse of Decode. The error names the first character that the
// encoding does not have.
func (e Encoding) Encode(text []byte) ([]byte, error) {
	if e.UTF8() {
		return text, nil
	}
	// Only valid text: an encoder writes a substitute for the rest.
	if at := invalid(text); at >= 0 {
		return nil, fmt.Errorf("byte 0x%02X is not valid UTF-8", text[at])
	}
	data, err := e.codec.NewEncoder().Bytes(text)
	if err == nil {
		return data, nil
	}
	for _, r := range string(text) {
		if _, err := e.codec.NewEncoder().Bytes([]byte(string(r))); err != nil {
			return nil, fmt.Errorf("%s has no character %q (U+%04X)", e, r, r)
		}
	}
	return nil, errors.New("the text cannot be written in " + e.String())
}

// Lossless reports whether decoding and encoding keeps data as it is.
func (e Encoding) Lossless(data []byte) bool {
	if e.UTF8() {
		return true
	}
	back, err := e.Encode(e.Decode(data))
	return err == nil && bytes.Equal(back, data)
}

// invalid returns where text is not valid UTF-8, or -1.
func invalid(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}
