package wire

import (
	"encoding/json"
	"unicode/utf8"
)

// Decode decodes an event into v: with fast, which returns false for a form that
// it does not expect, else with encoding/json, which takes several times as long.
// Both must give the same result; reset undoes what fast did to v.
func Decode(data []byte, v any, fast func(*Scanner) bool, reset func()) error {
	if s := (Scanner{data: data}); fast(&s) && s.end() {
		return nil
	}
	reset()
	return json.Unmarshal(data, v)
}

// Scanner reads JSON of a known form. Each method consumes what it reads and
// returns false for anything that it does not expect.
type Scanner struct {
	data []byte
	pos  int
}

// Object calls member at each value. Keys may only have lower-case letters,
// digits and "_": encoding/json might match others without regard to case.
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

// Members is Object for services whose keys are in mixed case. encoding/json
// would match keys in another case, too, but no service sends such.
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

// Skip skips any value.
func (s *Scanner) Skip() bool { return s.skip(0) }

func (s *Scanner) skip(depth int) bool {
	const maxDepth = 8
	if depth > maxDepth {
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

// Int reads a number of digits only, no more than fit an int.
func (s *Scanner) Int(n *int) bool {
	const maxDigits = 18
	s.space()
	begin, value := s.pos, 0
	for s.pos < len(s.data) && s.pos-begin < maxDigits && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		value = value*10 + int(s.data[s.pos]-'0')
		s.pos++
	}
	*n = value
	leadingZero := s.pos-begin > 1 && s.data[begin] == '0'
	return s.pos > begin && !leadingZero
}

// end reports whether nothing is left.
func (s *Scanner) end() bool {
	s.space()
	return s.pos == len(s.data)
}

// Text reads a string; null leaves *t unchanged. It allocates nothing if *t
// already has the value.
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

// raw reads a string and returns it undecoded, without quotes. A simple one,
// ASCII without escapes, needs no decoding.
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
