package quickjson

import (
	"bytes"
	"encoding/json"
)

// Reader reads a JSON text member by member. A member that is missing has its zero
// value. After a failure the reader reads nothing more, so only its end has to be
// checked. The strings and values that it returns do not point into the text.
type Reader struct {
	rest   []byte
	first  bool // an object was opened, and no member was read
	failed bool
}

// New returns a reader of a text.
func New(text []byte) Reader { return Reader{rest: text} }

// Rest returns what was not read yet.
func (r *Reader) Rest() []byte { return r.rest }

// OK reports whether nothing failed.
func (r *Reader) OK() bool { return !r.failed }

// End reports whether the whole text was read.
func (r *Reader) End() bool { return !r.failed && len(r.rest) == 0 }

// Fail makes the reader fail, as at what the caller cannot read.
func (r *Reader) Fail() { r.failed = true }

// Open reads the beginning of an object.
func (r *Reader) Open() {
	r.Need('{')
	r.first = true
}

// Close reads the end of an object.
func (r *Reader) Close() {
	r.Need('}')
	r.first = false
}

// Need reads a character, and fails if there is another.
func (r *Reader) Need(c byte) {
	if !r.Skip(c) {
		r.failed = true
	}
}

// Skip reads a character, if it is next.
func (r *Reader) Skip(c byte) bool {
	if r.failed || len(r.rest) == 0 || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// Member reads the name of a member, if it is next; then its value is.
func (r *Reader) Member(name string) bool {
	s, n := r.rest, len(name)
	if !r.first && len(s) > 0 {
		if s[0] != ',' {
			return false
		}
		s = s[1:]
	}
	if r.failed || len(s) < n+3 || s[0] != '"' || string(s[1:n+1]) != name || s[n+1] != '"' || s[n+2] != ':' {
		return false
	}
	r.rest, r.first = s[n+3:], false
	return true
}

// String returns a string.
func (r *Reader) String(name string) string {
	if !r.Member(name) {
		return ""
	}
	r.Need('"')
	n := plain(r.rest)
	if n == len(r.rest) || r.rest[n] != '"' {
		return r.escaped()
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n+1:]
	return s
}

// Bytes returns a string of printable ASCII without escapes; it does point into the text.
func (r *Reader) Bytes(name string) []byte {
	if !r.Member(name) {
		return nil
	}
	r.Need('"')
	n := plain(r.rest)
	if r.failed || n == len(r.rest) || r.rest[n] != '"' {
		r.failed = true
		return nil
	}
	s := r.rest[:n]
	r.rest = r.rest[n+1:]
	return s
}

// True reports whether there is a member that is true. It fails if it is anything else.
func (r *Reader) True(name string) bool {
	if !r.Member(name) {
		return false
	}
	rest, ok := bytes.CutPrefix(r.rest, []byte("true"))
	r.rest, r.failed = rest, !ok
	return ok
}

// Int returns a whole number.
func (r *Reader) Int(name string) int64 {
	if !r.Member(name) {
		return 0
	}
	const most = 18 // digits that every int64 has
	negative, n, i := r.Skip('-'), int64(0), 0
	for ; i < len(r.rest) && i <= most && r.rest[i] >= '0' && r.rest[i] <= '9'; i++ {
		n = 10*n + int64(r.rest[i]-'0')
	}
	if i == 0 || i > most || i > 1 && r.rest[0] == '0' {
		r.failed = true
		return 0
	}
	if r.rest = r.rest[i:]; negative {
		return -n
	}
	return n
}

// Decode reads an object, an array or a string with a decoder.
func (r *Reader) Decode(name string, decode func(text []byte) error) {
	if !r.Member(name) {
		return
	}
	n := extent(r.rest)
	if n == 0 || decode(r.rest[:n]) != nil {
		r.failed = true
		return
	}
	r.rest = r.rest[n:]
}

// Raw returns an object, an array or a string as it is.
func (r *Reader) Raw(name string) (raw json.RawMessage) {
	r.Decode(name, func(text []byte) error { return json.Unmarshal(text, &raw) })
	return raw
}
