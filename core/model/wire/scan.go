package wire

import (
	"encoding/json"
	"unicode/utf8"
)

// Decode reads the usual form of an event with usual, and any other with
// encoding/json, which takes several times as long. Both must give the same
// result; usual returns false for whatever it does not expect. It gets a v that
// is as it was; reset makes it so again.
func Decode(data []byte, v any, usual func(*Scanner) bool, reset func()) error {
	if s := (Scanner{data: data}); usual(&s) && s.End() {
		return nil
	}
	reset()
	return json.Unmarshal(data, v)
}

// Scanner reads JSON of a known form. Each method consumes what it reads and
// returns false for what it does not expect.
type Scanner struct {
	data []byte
	pos  int
}

// Object calls member at each value. A key of other characters than small
// letters, digits and "_" is not expected: encoding/json might take it for one
// of ours in another case.
func (s *Scanner) Object(member func(key []byte) bool) bool {
	return s.list('{', '}', func() bool {
		key, ok := s.plain()
		if !ok || !s.char(':') {
			return false
		}
		for _, c := range key {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
				return false
			}
		}
		return member(key)
	})
}

// Members is Object for services that write their keys in mixed case.
// encoding/json would take a key in another case, too; there is no such service.
func (s *Scanner) Members(member func(key []byte) bool) bool {
	return s.list('{', '}', func() bool {
		key, ok := s.plain()
		return ok && s.char(':') && member(key)
	})
}

// Array calls element at each value.
func (s *Scanner) Array(element func() bool) bool { return s.list('[', ']', element) }

func (s *Scanner) list(begin, end byte, element func() bool) bool {
	if !s.char(begin) {
		return false
	}
	if s.char(end) {
		return true
	}
	for element() {
		if s.char(end) {
			return true
		}
		if !s.char(',') {
			return false
		}
	}
	return false
}

// Skip passes over any value.
func (s *Scanner) Skip() bool { return s.skip(0) }

func (s *Scanner) skip(depth int) bool {
	const deepest = 8
	if depth > deepest {
		return false
	}
	s.space()
	if s.pos == len(s.data) {
		return false
	}
	switch s.data[s.pos] {
	case '"':
		_, ok := s.plain()
		return ok
	case '{':
		return s.list('{', '}', func() bool {
			_, ok := s.plain()
			return ok && s.char(':') && s.skip(depth+1)
		})
	case '[':
		return s.Array(func() bool { return s.skip(depth + 1) })
	case 'n':
		return s.Literal("null")
	case 't':
		return s.Literal("true")
	case 'f':
		return s.Literal("false")
	}
	var n int
	return s.Int(&n)
}

func (s *Scanner) space() {
	for s.pos < len(s.data) && (s.data[s.pos] == ' ' || s.data[s.pos] == '\n' || s.data[s.pos] == '\t' || s.data[s.pos] == '\r') {
		s.pos++
	}
}

func (s *Scanner) char(c byte) bool {
	s.space()
	if s.pos == len(s.data) || s.data[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

// Literal reads null, true or false.
func (s *Scanner) Literal(word string) bool {
	s.space()
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// Int reads digits, at most so many that they fit an int.
func (s *Scanner) Int(n *int) bool {
	const most = 18
	s.space()
	begin, value := s.pos, 0
	for s.pos < len(s.data) && s.pos-begin < most && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		value = value*10 + int(s.data[s.pos]-'0')
		s.pos++
	}
	*n = value
	leadingZero := s.pos-begin > 1 && s.data[begin] == '0'
	return s.pos > begin && !leadingZero
}

// End reports whether nothing is left.
func (s *Scanner) End() bool {
	s.space()
	return s.pos == len(s.data)
}

// Text reads a string, or null as none. A string that *t has already costs nothing.
func (s *Scanner) Text(t *string) bool {
	if s.Literal("null") {
		return true
	}
	inner, simple, ok := s.raw()
	switch {
	case !ok:
		return false
	case !simple:
		return json.Unmarshal(s.data[s.pos-len(inner)-2:s.pos], t) == nil
	case string(inner) != *t:
		*t = string(inner)
	}
	return true
}

// plain reads a string without escapes.
func (s *Scanner) plain() ([]byte, bool) {
	inner, simple, ok := s.raw()
	return inner, ok && simple
}

// raw reads a string and returns its inside, undecoded. A simple one is its
// own decoding: ASCII without escapes.
func (s *Scanner) raw() (inner []byte, simple, ok bool) {
	if !s.char('"') {
		return nil, false, false
	}
	simple = true
	for i := s.pos; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			inner = s.data[s.pos:i]
			s.pos = i + 1
			return inner, simple, true
		case c == '\\':
			simple = false
			i++
		case c < ' ':
			return nil, false, false
		case c >= utf8.RuneSelf:
			simple = false
		}
	}
	return nil, false, false
}
