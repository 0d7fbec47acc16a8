package langchain

import (
	"encoding/json"
	"unicode/utf8"
)

// decode replaces c by the chunk in data. Nearly all chunks are read by a
// scanner that knows their form; encoding/json, which takes ten times as long,
// decides about all others. Both give the same result.
func (c *chunk) decode(data []byte) error {
	c.reset()
	if s := (scanner{data: data}); s.chunk(c) && s.end() {
		return nil
	}
	c.reset()
	return json.Unmarshal(data, c)
}

// reset empties c, but for the strings that the next chunk most likely repeats.
func (c *chunk) reset() {
	clear(c.Choices[:cap(c.Choices)]) // decoding reuses elements as they are
	*c = chunk{ID: c.ID, Model: c.Model, Choices: c.Choices[:0]}
}

// scanner reads the usual form of a chunk. Each method consumes what it reads
// and returns false for whatever is not expected there.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) chunk(c *chunk) bool {
	seen := false
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "id":
			return s.text(&c.ID)
		case "model":
			return s.text(&c.Model)
		case "choices":
			if seen {
				return false
			}
			seen = true
			return s.array(func() bool {
				c.Choices = append(c.Choices, choice{})
				return s.choice(&c.Choices[len(c.Choices)-1])
			})
		case "usage", "error":
			return s.literal("null")
		}
		return s.skip(0)
	})
}

func (s *scanner) choice(c *choice) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.integer(&c.Index)
		case "delta":
			return s.delta(&c.Delta)
		case "finish_reason":
			return s.literal("null") || s.text(&c.FinishReason)
		case "message":
			return s.literal("null")
		}
		return s.skip(0)
	})
}

func (s *scanner) delta(d *delta) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return s.literal("null") || s.text(&d.Content)
		case "reasoning_content":
			return s.literal("null") || s.text(&d.ReasoningContent)
		case "reasoning":
			return s.literal("null") || s.text(&d.Reasoning)
		case "refusal":
			return s.literal("null") || s.text(&d.Refusal)
		case "tool_calls":
			return len(d.ToolCalls) == 0 && s.array(func() bool {
				d.ToolCalls = append(d.ToolCalls, callPart{})
				return s.call(&d.ToolCalls[len(d.ToolCalls)-1])
			})
		}
		return s.skip(0)
	})
}

func (s *scanner) call(p *callPart) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "index":
			p.Index = new(int)
			return s.integer(p.Index)
		case "id":
			return s.literal("null") || s.text(&p.ID)
		case "function":
			return s.object(func(key []byte) bool {
				switch string(key) {
				case "name":
					return s.literal("null") || s.text(&p.Function.Name)
				case "arguments":
					return s.text((*string)(&p.Function.Arguments))
				}
				return s.skip(0)
			})
		}
		return s.skip(0)
	})
}

// object calls member at each value. A key of other characters than small
// letters, digits and "_" is not expected: encoding/json might take it for one
// of ours in another case.
func (s *scanner) object(member func(key []byte) bool) bool {
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

func (s *scanner) array(element func() bool) bool { return s.list('[', ']', element) }

func (s *scanner) list(begin, end byte, element func() bool) bool {
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

// skip passes over any value.
func (s *scanner) skip(depth int) bool {
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
		return s.array(func() bool { return s.skip(depth + 1) })
	case 'n':
		return s.literal("null")
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	}
	var n int
	return s.integer(&n)
}

func (s *scanner) space() {
	for s.pos < len(s.data) && (s.data[s.pos] == ' ' || s.data[s.pos] == '\n' || s.data[s.pos] == '\t' || s.data[s.pos] == '\r') {
		s.pos++
	}
}

func (s *scanner) char(c byte) bool {
	s.space()
	if s.pos == len(s.data) || s.data[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) literal(word string) bool {
	s.space()
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// integer reads digits, at most so many that they fit an int.
func (s *scanner) integer(n *int) bool {
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

func (s *scanner) end() bool {
	s.space()
	return s.pos == len(s.data)
}

// text reads a string. A string that *t has already costs nothing.
func (s *scanner) text(t *string) bool {
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
func (s *scanner) plain() ([]byte, bool) {
	inner, simple, ok := s.raw()
	return inner, ok && simple
}

// raw reads a string and returns its inside, undecoded. A simple one is its
// own decoding: ASCII without escapes.
func (s *scanner) raw() (inner []byte, simple, ok bool) {
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
