package conversation

import (
	"slices"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/compaction"
	"github.com/seed-009c0928/agent/core/model"
)

// boundTokens is more than a model can take.
const boundTokens = 2 << 20

// Bound drops what no model could be sent, so that a conversation that was never
// compacted fits into memory. A resumed session does it at the same points.
func (c *Conversation) Bound(window int) {
	most := max(boundTokens, window)
	if c.size <= 4*most {
		return
	}
	s := c.Split(most, most)
	c.replace(s.Summary(compaction.Dropped, most/10), s.Kept)
	c.inputs = nil
}

// Split is a conversation in two parts: what a summary replaces, and the rest.
type Split struct {
	Dropped []model.Message
	Kept    int    // the number of messages after them
	memory  string // what the summary holds word for word
}

// Split keeps the last messages, as many as fit into keep tokens. The summary holds
// at most room tokens word for word.
func (c *Conversation) Split(keep, room int) Split {
	kept := compaction.Keep(c.messages, keep)
	dropped := c.messages[:len(c.messages)-kept]
	return Split{dropped, kept, c.Memory.Text(c.messages[len(dropped):], room)}
}

// Summary returns the message that replaces the dropped ones; see
// [compaction.Summary].
func (s Split) Summary(notes string, room int) model.Parts {
	return compaction.Summary(notes, s.memory, s.Dropped, room)
}

// Compact replaces all but the last messages by a summary. The inputs before it can
// be taken back as long as their messages are no more than a model can take.
func (c *Conversation) Compact(b event.Compacted) {
	c.Usage = c.Usage.Add(b.Usage)
	c.past += c.size
	c.inputs = slices.DeleteFunc(slices.Clone(c.inputs), func(in *input) bool { return c.past-in.past > boundTokens })
	c.replace(b.Content, min(b.Kept, len(c.messages)))
}

// replace keeps the last messages behind a summary. Results whose calls are missing,
// in a damaged log, go too.
func (c *Conversation) replace(summary model.Parts, kept int) {
	for kept > 0 && c.messages[len(c.messages)-kept].Role == model.RoleTool {
		kept--
	}
	tail, answered, stopped := c.messages[len(c.messages)-kept:], c.Answered && kept > 0, c.Stopped
	c.messages, c.Context, c.size, c.Warned = make([]model.Message, 0, kept+8), 0, 0, false
	c.Add(model.RoleUser, summary)
	for _, m := range tail {
		c.Add(m.Role, m.Parts)
	}
	c.Answered, c.Stopped = answered, stopped
}
