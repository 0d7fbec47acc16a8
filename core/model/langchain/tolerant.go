package langchain

import (
	"encoding/json"
	"strings"
)

// This file reads what servers send against the API's rules.

// content is the content of a message: mostly a string, but a list of parts from
// Mistral's reasoning models (https://docs.mistral.ai/capabilities/reasoning) and
// some servers.
type content struct{ text, thought string }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *content) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case 'n': // null changes nothing, as with a string
		return nil
	case '"':
		c.thought = ""
		return json.Unmarshal(data, &c.text)
	case '[':
		*c = content{}
		var parts []json.RawMessage
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		for _, part := range parts {
			c.add(part)
		}
	case '{':
		*c = content{}
		c.add(data)
	}
	return nil
}

// add adds a part: a string, or an object with text or thinking. Parts of other
// kinds are left out.
func (c *content) add(data json.RawMessage) {
	var part struct{ Text, Thinking content }
	var text string
	switch {
	case json.Unmarshal(data, &text) == nil:
		c.text += text
	case json.Unmarshal(data, &part) == nil:
		c.text += part.Text.text
		c.thought += part.Thinking.text
	}
}

// thinkTags takes the reasoning out of a text that begins with <think>, as
// servers send it that do not separate the reasoning of open models.
type thinkTags struct {
	state thinkState
	held  string // text that may be a part of a tag
}

type thinkState int

const (
	thinkUndecided thinkState = iota // the text may still begin with a tag
	thinkInside
	thinkEnded // the white space after the tag is left out
	thinkNone
)

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// split returns the text and the reasoning in a piece of the content.
func (t *thinkTags) split(piece string) (text, thought string) {
	if t.state == thinkNone || piece == "" {
		return piece, ""
	}
	t.held += piece
	if t.state == thinkUndecided {
		begun := strings.TrimLeft(t.held, " \r\n\t")
		switch rest, ok := strings.CutPrefix(begun, thinkBegin); {
		case ok:
			t.state, t.held = thinkInside, rest
		case strings.HasPrefix(thinkBegin, begun):
			return "", ""
		default:
			t.state = thinkNone
			return t.rest(), ""
		}
	}
	if t.state == thinkInside {
		thought = t.inside()
	}
	if t.state == thinkEnded {
		text = strings.TrimLeft(t.held, "\r\n")
		t.held = ""
		if text != "" {
			t.state = thinkNone
		}
	}
	return text, thought
}

// inside returns the reasoning in the held text, up to the end tag or what may be
// a part of it.
func (t *thinkTags) inside() string {
	if thought, rest, ok := strings.Cut(t.held, thinkEnd); ok {
		t.state, t.held = thinkEnded, rest
		return thought
	}
	keep := 0
	for n := min(len(t.held), len(thinkEnd)-1); n > 0; n-- {
		if strings.HasSuffix(t.held, thinkEnd[:n]) {
			keep = n
			break
		}
	}
	thought := t.held[:len(t.held)-keep]
	t.held = t.held[len(t.held)-keep:]
	return thought
}

// rest returns the held text when the content ends: it is no tag.
func (t *thinkTags) rest() string {
	text := t.held
	t.held = ""
	return text
}
