package conversation

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/answers"
	"github.com/seed-009c0928/agent/core/internal/compaction"
	"github.com/seed-009c0928/agent/core/internal/questions"
	"github.com/seed-009c0928/agent/core/internal/repeat"
	"github.com/seed-009c0928/agent/core/model"
)

// Conversation is the messages of a session and its cost. What was sent once is sent
// again byte for byte. It is owned by one goroutine; only View, Note, Memory and
// Questions may be used by others.
type Conversation struct {
	state
	Prompt Prompt
	Memory compaction.Memory
	// Questions are those about the calls of the last answer.
	Questions questions.Set
	Usage     model.Usage // of all answers, also of those taken back
	Cost      float64     // USD
	// Settings are those that the host has recorded as changed, by name.
	Settings map[string]string
	// Input is the last record of an input that was applied.
	Input event.Event
	// Price is the price of a usage; nil, or false, if it is unknown.
	Price func(provider, name string, u model.Usage) (float64, bool)

	view atomic.Pointer[View]
	// Stopped says that the work on the last input ended, and not by an interruption.
	Stopped bool
	Queued  []Queued // messages of a session log that were not added

	inputs  []*input
	taken   map[string]bool             // IDs of inputs
	past    int                         // tokens of all messages that summaries replaced
	recent  []string                    // signatures of the last calls
	open    []model.ToolCall            // calls of the last answer, while one has no result
	results map[string]model.ToolResult // of open calls
}

// state is what [Conversation.Rewind] restores.
type state struct {
	messages []model.Message
	Turns    int  // user and assistant turns
	Images   bool // some message has an image
	Warned   bool // that the window is nearly used
	Answered bool // the last message is a complete answer
	Context  int  // estimated tokens of the next request
	size     int  // tokens of the messages, always estimated
}

// input is where an input began, and what was there before it.
type input struct {
	seq    event.Seq
	past   int // Conversation.past then
	before state
	memory compaction.Notes
}

// Prompt is the current system prompt, and the settings that it was built for.
type Prompt struct {
	Text, Provider, Model, Profile string
	Built                          bool
}

// View is the conversation at one moment. It never changes.
type View struct {
	Messages []model.Message
	inputs   []*input
}

// Inputs returns the numbers of the inputs that can be taken back.
func (v View) Inputs() []event.Seq {
	list := make([]event.Seq, len(v.inputs))
	for i, in := range v.inputs {
		list[i] = in.seq
	}
	return list
}

// Queued is a message that waits to be added.
type Queued struct {
	Seq           event.Seq // of its event; 0 = none
	Source        string
	Parts, Record model.Parts                  // as added, and as recorded
	Work          func(context.Context) string // makes the text; may be nil
}

// View returns the current view. It is safe for concurrent use.
func (c *Conversation) View() View {
	if v := c.view.Load(); v != nil {
		return *v
	}
	return View{}
}

// Messages returns the messages. The slice is shared: do not change it.
func (c *Conversation) Messages() []model.Message { return slices.Clip(c.messages) }

// Add adds a message that is not an input.
func (c *Conversation) Add(role model.Role, parts model.Parts) {
	c.messages = append(c.messages, model.Message{Role: role, Parts: parts})
	c.Answered, c.Stopped = false, false
	c.Images = c.Images || parts.HasImage()
	size := parts.EstimateTokens()
	c.Context, c.size = c.Context+size, c.size+size
	c.show()
}

func (c *Conversation) show() {
	c.view.Store(&View{c.Messages(), slices.Clip(c.inputs)})
}

// Begin is called before the event of an input, and AddInput with its number after it.
func (c *Conversation) Begin() {
	before := c.state
	before.messages = c.Messages()
	c.inputs = append(c.inputs, &input{past: c.past, before: before, memory: c.Memory.Save()})
}

// Taken reports whether there was an input with an ID.
func (c *Conversation) Taken(id string) bool { return c.taken[id] }

// Unfinished reports whether work on an input was interrupted.
func (c *Conversation) Unfinished() bool {
	return len(c.messages) > 0 && !c.Stopped && (!c.Answered || len(c.open) > 0 || len(c.Queued) > 0)
}

// LastText returns the text of the last message.
func (c *Conversation) LastText() string {
	if len(c.messages) == 0 {
		return ""
	}
	return c.messages[len(c.messages)-1].Parts.Text()
}

// AddInput adds the input with this number and ID, which may be empty.
func (c *Conversation) AddInput(seq event.Seq, id string, parts model.Parts) {
	if id != "" && c.taken == nil {
		c.taken = map[string]bool{}
	}
	if id != "" {
		c.taken[id] = true
	}
	c.inputs[len(c.inputs)-1].seq = seq
	c.Turns++
	c.Add(model.RoleUser, parts)
}

// Rewind takes back an input and everything after it but the cost. It reports
// whether there is that input.
func (c *Conversation) Rewind(seq event.Seq) bool {
	at := slices.IndexFunc(c.inputs, func(in *input) bool { return in.seq == seq })
	if at < 0 {
		return false
	}
	c.state = c.inputs[at].before
	c.Memory.Restore(c.inputs[at].memory)
	c.inputs, c.recent = slices.Clone(c.inputs[:at]), nil // others may read the rest
	if c.Turns == 0 {
		c.Context += len(c.Prompt.Text) / 4
	}
	c.show()
	return true
}

// AddAnswer adds an answer and its cost. Its usage replaces the estimate.
func (c *Conversation) AddAnswer(m event.Message) {
	c.Usage = c.Usage.Add(m.Usage)
	if len(m.Content) == 0 {
		return
	}
	c.Turns++
	c.Add(model.RoleAssistant, m.Content)
	if n := m.Usage.Total(); n > 0 {
		c.Context = n
	}
	c.open = m.Content.ToolCalls()
	c.Answered = len(c.open) == 0 && !m.Partial && (m.Stop == model.StopEnd || m.Stop == model.StopOther || m.Stop == "")
	clear(c.results)
}

// AddResult adds the result of an open call. With the last one, the results join
// the conversation in the order of the calls.
func (c *Conversation) AddResult(r model.ToolResult) {
	if c.results == nil {
		c.results = map[string]model.ToolResult{}
	}
	c.results[r.CallID] = r
	c.Images = c.Images || r.Content.HasImage()
	if len(c.results) < len(c.open) {
		return
	}
	last := len(c.messages) - 1
	parts, renamed := answers.MatchNames(c.messages[last].Parts, c.open, c.results)
	if renamed != nil { // others may read the messages
		c.messages = slices.Clone(c.messages)
		c.messages[last].Parts = renamed
	}
	c.open = nil
	clear(c.results)
	c.Add(model.RoleTool, parts)
}

// Open returns the calls without a result.
func (c *Conversation) Open() []model.ToolCall {
	return slices.DeleteFunc(slices.Clone(c.open), func(call model.ToolCall) bool {
		_, ok := c.results[call.ID]
		return ok
	})
}

// Spend adds the price of a usage, as far as it is known.
func (c *Conversation) Spend(provider, name string, u model.Usage) (usd float64, known bool) {
	if c.Price != nil {
		usd, known = c.Price(provider, name, u)
	}
	c.Cost += usd
	return usd, known
}

// Repeats adds an answer's calls to the recent ones, and returns the length of the
// pattern that these repeat, or 0.
func (c *Conversation) Repeats(calls []model.ToolCall, window int) int {
	c.recent = repeat.Add(c.recent, calls, window)
	return repeat.Pattern(c.recent, window)
}

// NewPattern forgets the recent calls, of which the model was warned.
func (c *Conversation) NewPattern() { c.recent = nil }

// Note takes an event, in the form in which it is recorded. It is safe for concurrent
// use.
func (c *Conversation) Note(call string, body event.Body) {
	c.Memory.Add(call, body)
	c.Questions.Add(call, body)
}

// Options are the settings with which a session log is read.
type Options struct {
	Window     int // the model's context window, in tokens; 0 = unknown
	LoopWindow int
}

// Apply adds a record of the session log. The error says why it cannot be read.
func (c *Conversation) Apply(e event.Event, o Options) error {
	if _, ok := e.Body.(event.User); ok {
		c.Begin()
	}
	c.Note(e.Call, e.Body)
	switch b := e.Body.(type) {
	case event.SettingChanged:
		if c.Settings == nil {
			c.Settings = map[string]string{}
		}
		c.Settings[b.Setting] = b.Value
	case event.Prompt:
		c.Prompt = Prompt{b.Text, b.Provider, b.Model, b.Profile, true}
	case event.User:
		c.Input = e
		c.AddInput(e.Seq, b.Input, b.Content)
	case event.Idle:
		c.Stopped = b.State != Unfinished
	case event.Queued:
		if b.Run == "" { // others are inputs, which are the host's
			c.Queued = append(c.Queued, Queued{Seq: e.Seq, Source: b.Source, Parts: b.Content, Record: b.Content})
		}
	case event.Steering:
		if b.Source == LoopDetection {
			c.NewPattern()
		}
		c.Queued = slices.DeleteFunc(c.Queued, func(q Queued) bool { return q.Seq == b.Queued })
		c.Add(model.RoleUser, b.Content)
	case event.Compacted:
		c.Bound(o.Window)
		c.Compact(b)
		c.Spend(b.Provider, b.Model, b.Usage)
	case event.Message:
		c.Bound(o.Window)
		c.AddAnswer(b)
		c.Repeats(b.Content.ToolCalls(), o.LoopWindow)
		c.Spend(b.Provider, b.Model, b.Usage)
	case event.ToolResult:
		c.AddResult(model.ToolResult{CallID: e.Call, Name: b.Name, Content: b.Content, IsError: b.IsError})
	case event.Rewound:
		if !c.Rewind(b.Input) {
			return fmt.Errorf("record %d takes back input %d, which is missing", e.Seq, b.Input)
		}
	case event.Unknown:
		if e.Required {
			return fmt.Errorf("record %d has the unknown type %q: use the version that wrote it, or a newer one", e.Seq, b.Kind)
		}
	}
	return nil
}

// Unfinished is the state of a session that an event.Idle has.
const Unfinished = "unfinished"

// LoopDetection is the source of a warning's steering turn.
const LoopDetection = "loop_detection"
