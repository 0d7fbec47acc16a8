package langchain

import "github.com/seed-009c0928/agent/core/model/wire"

// decode replaces c by the chunk in data.
func (c *chunk) decode(data []byte) error {
	c.reset()
	return wire.Decode(data, c, func(s *wire.Scanner) bool { return scanChunk(s, c) }, c.reset)
}

// reset clears c, except for strings that the next chunk probably repeats.
func (c *chunk) reset() {
	clear(c.Choices[:cap(c.Choices)]) // decoding does not clear reused elements
	*c = chunk{ID: c.ID, Model: c.Model, Choices: c.Choices[:0]}
}

func scanChunk(s *wire.Scanner, c *chunk) bool {
	seen := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "id":
			return s.Text(&c.ID)
		case "model":
			return s.Text(&c.Model)
		case "choices":
			if seen {
				return false
			}
			seen = true
			return s.Array(func() bool {
				c.Choices = append(c.Choices, choice{})
				return scanChoice(s, &c.Choices[len(c.Choices)-1])
			})
		case "usage", "error":
			return s.Literal("null")
		}
		return s.Skip()
	})
}

func scanChoice(s *wire.Scanner, c *choice) bool {
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.Int(&c.Index)
		case "delta":
			return scanDelta(s, &c.Delta)
		case "finish_reason":
			return s.Text(&c.FinishReason)
		case "message":
			return s.Literal("null")
		}
		return s.Skip()
	})
}

func scanDelta(s *wire.Scanner, d *delta) bool {
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return s.Text(&d.Content.text)
		case "reasoning_content":
			return s.Text(&d.ReasoningContent)
		case "reasoning":
			return s.Text(&d.Reasoning)
		case "refusal":
			return s.Text(&d.Refusal)
		case "tool_calls":
			return len(d.ToolCalls) == 0 && s.Array(func() bool {
				d.ToolCalls = append(d.ToolCalls, callPart{})
				return scanCall(s, &d.ToolCalls[len(d.ToolCalls)-1])
			})
		}
		return s.Skip()
	})
}

func scanCall(s *wire.Scanner, p *callPart) bool {
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			p.Index = new(int)
			return s.Int(p.Index)
		case "id":
			return s.Text(&p.ID)
		case "function":
			return s.Object(func(key []byte) bool {
				switch string(key) {
				case "name":
					return s.Text(&p.Function.Name)
				case "arguments":
					return s.Text((*string)(&p.Function.Arguments))
				}
				return s.Skip()
			})
		}
		return s.Skip()
	})
}
