package langchain

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

// conversation caches the encoded messages of the last request. As conversations
// grow, only the new messages of a turn are encoded. Cached messages are compared
// first: a changed message, or another conversation, costs only time.
type conversation struct {
	encoding encoding

	mu     sync.Mutex
	system string
	seen   []model.Message // copies of the encoded messages
	cuts   []int           // the end of each in text; -1 if images wait for the next
	text   []byte          // wire messages, each followed by a comma
}

// encode appends the JSON array of the request's messages to b.
func (c *conversation) encode(b *bytes.Buffer, req *model.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.reusable(req)
	c.seen, c.cuts = c.seen[:n], c.cuts[:n]
	c.system = req.System
	if n > 0 {
		c.text = c.text[:c.cuts[n-1]]
	} else if c.text = c.text[:0]; req.System != "" {
		if err := c.add(wireMessage{Role: "system", Content: req.System}); err != nil {
			return err
		}
	}
	var images []wirePart
	for i := n; i < len(req.Messages); i++ {
		if err := c.add(c.encoding.messages(req.Messages, i, &images)...); err != nil {
			c.seen, c.cuts = nil, nil
			return err
		}
		cut := len(c.text)
		if len(images) > 0 {
			cut = -1
		}
		c.seen, c.cuts = append(c.seen, copyMessage(req.Messages[i])), append(c.cuts, cut)
	}
	b.WriteByte('[')
	b.Write(bytes.TrimSuffix(c.text, []byte(",")))
	b.WriteByte(']')
	return nil
}

// add encodes wire messages after the others.
func (c *conversation) add(messages ...wireMessage) error {
	buf := bytes.NewBuffer(c.text)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for _, m := range messages {
		if err := enc.Encode(m); err != nil {
			return err
		}
		buf.Truncate(buf.Len() - 1) // the encoder's newline
		buf.WriteByte(',')
	}
	c.text = buf.Bytes()
	return nil
}

// reusable returns how many of the request's messages are cached. The last equal
// one is not counted, as its form can depend on the next.
func (c *conversation) reusable(req *model.Request) int {
	if c.system != req.System {
		return 0
	}
	n := 0
	for n < min(len(c.seen), len(req.Messages)) && sameMessage(c.seen[n], req.Messages[n]) {
		n++
	}
	for n--; n > 0 && c.cuts[n-1] < 0; {
		n--
	}
	return max(n, 0)
}

func sameMessage(a, b model.Message) bool {
	return a.Role == b.Role && slices.EqualFunc(a.Parts, b.Parts, samePart)
}

// samePart is fast for parts that share their strings, as in a growing
// conversation.
func samePart(a, b model.Part) bool {
	switch a := a.(type) {
	case model.Text, model.ToolCall, model.Reasoning, model.ToolReference:
		return a == b
	case model.ToolResult:
		r, ok := b.(model.ToolResult)
		return ok && a.CallID == r.CallID && a.Name == r.Name && a.IsError == r.IsError && slices.EqualFunc(a.Content, r.Content, samePart)
	case model.Image:
		i, ok := b.(model.Image)
		return ok && a.MediaType == i.MediaType && a.Blob == i.Blob && bytes.Equal(a.Data, i.Data)
	}
	return false // rare kinds are encoded again
}

// copyMessage copies a message with its slices, which the caller may change.
func copyMessage(m model.Message) model.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if r, ok := p.(model.ToolResult); ok {
			r.Content = slices.Clone(r.Content)
			m.Parts[i] = r
		}
	}
	return m
}
