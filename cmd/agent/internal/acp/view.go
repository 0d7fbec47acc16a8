package acp

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// view is what a session's events add up to.
type view struct {
	messages int  // answers of the model, to name them
	streamed bool // deltas of the present answer came
	titled   bool // the session has an input
	used     int
	cost     float64
	priced   bool
	calls    map[string]*call // that have no result yet, and the last ones that have
}

// text is a content block with a text.
func text(t string) protocol.ContentBlock {
	return protocol.ContentBlock{Tag: "text", Value: &protocol.TextContent{Text: t}}
}

// chunk is a part of the message with the ID.
func chunk(t, id string) *protocol.ContentChunk {
	return &protocol.ContentChunk{Content: text(t), MessageID: id}
}

// show tells the client of an event. What is past changes the view only, unless it
// is replayed.
func (s *session) show(e event.Event, past, tell bool) {
	if !tell {
		s.skip(e)
		return
	}
	switch b := e.Body.(type) {
	case event.User:
		s.showInput(e, b.Content, past)
	case event.Steering:
		if b.Source == "user" && past {
			s.showUser(e, b.Content)
		}
	case event.MessageDelta:
		s.streamed = true
		s.update("agent_message_chunk", chunk(b.Text, s.messageID()))
	case event.ReasoningDelta:
		s.streamed = true
		s.update("agent_thought_chunk", chunk(b.Text, s.messageID()))
	case event.Message:
		s.showMessage(b)
	case event.ToolUse, event.Permission, event.ToolOutputDelta, event.ToolProgress, event.ToolResult, event.FilesChanged:
		s.showCall(e, past)
	case event.Compacted:
		s.showCompacted(e, b)
	case event.SubagentEnd:
		if b.CostUSD != nil {
			s.cost, s.priced = s.cost+*b.CostUSD, true
		}
	case event.Question:
		if !past {
			s.ask(b, e.Call)
		}
	case event.SettingChanged:
		if !past {
			s.showSetting(b)
		}
	case event.Answer:
		s.answered(b.QID)
	case event.Warning:
		s.notice("warning", b.Message, "")
	case event.LLMRetry:
		s.showRetry(b)
	case event.Result:
		s.finish(b)
	}
}

// skip is show for the past that the client knows.
func (s *session) skip(e event.Event) {
	switch b := e.Body.(type) {
	case event.User:
		s.titled = true
	case event.Message:
		s.count(b)
	case event.Compacted:
		s.used = b.After
	case event.SubagentEnd:
		if b.CostUSD != nil {
			s.cost, s.priced = s.cost+*b.CostUSD, true
		}
	}
}

// showSetting shows the change of a setting.
func (s *session) showSetting(b event.SettingChanged) {
	options, _ := s.options()
	for _, o := range options {
		if o.ID == b.Setting && o.Category == categoryMode {
			s.update("current_mode_update", &protocol.CurrentModeUpdate{CurrentModeID: b.Value})
		}
	}
	s.update("config_option_update", &protocol.ConfigOptionUpdate{ConfigOptions: options})
}

func (s *session) messageID() protocol.MessageID { return fmt.Sprintf("%s-m%d", s.ID(), s.messages) }

// showInput shows the title of the session, and a past input: the client has shown
// the others.
func (s *session) showInput(e event.Event, content model.Parts, past bool) {
	if past {
		s.showUser(e, content)
	}
	if s.titled {
		return
	}
	s.titled = true
	for _, p := range content {
		if t, ok := p.(model.Text); ok {
			line, _, _ := strings.Cut(strings.TrimSpace(t.Text), "\n")
			if r := []rune(line); len(r) > 80 {
				line = string(r[:79]) + "…"
			}
			s.update("session_info_update", &protocol.SessionInfoUpdate{Title: line})
			return
		}
	}
}

// showUser shows a past input, without what context sources added.
func (s *session) showUser(e event.Event, content model.Parts) {
	id := fmt.Sprintf("%s-u%d", s.ID(), e.Seq)
	for _, p := range content {
		if t, ok := p.(model.Text); ok && strings.HasPrefix(t.Text, "<context source=") {
			continue
		}
		if block, ok := s.block(p); ok {
			s.update("user_message_chunk", &protocol.ContentChunk{Content: block, MessageID: id})
		}
	}
}

// block returns a part as a content block.
func (s *session) block(p model.Part) (protocol.ContentBlock, bool) {
	switch p := p.(type) {
	case model.Text:
		return text(p.Text), p.Text != ""
	case model.Image:
		data, err := s.opened.Session.Image(context.WithoutCancel(s.ctx), p)
		if err != nil {
			return text("[an image that is not stored any more]"), true
		}
		return protocol.ContentBlock{Tag: "image", Value: &protocol.ImageContent{MimeType: p.MediaType, Data: base64.StdEncoding.EncodeToString(data)}}, true
	}
	return protocol.ContentBlock{}, false
}

// showMessage ends an answer of the model: it shows what no deltas have shown, since
// there are none in the record.
func (s *session) showMessage(b event.Message) {
	id := s.messageID()
	if !s.streamed {
		for _, p := range b.Content {
			switch p := p.(type) {
			case model.Reasoning:
				if p.Text != "" {
					s.update("agent_thought_chunk", chunk(p.Text, id))
				}
			case model.Text:
				if p.Text != "" {
					s.update("agent_message_chunk", chunk(p.Text, id))
				}
			}
		}
	}
	s.count(b)
	s.showUsage()
}

// count takes up the usage of an answer.
func (s *session) count(b event.Message) {
	s.streamed = false
	s.messages++
	if total := b.Usage.Total(); total > 0 {
		s.used = total
	}
	if s.opened.Cost != nil {
		if usd, ok := s.opened.Cost(b.Provider, b.Model, b.Usage); ok {
			s.cost, s.priced = s.cost+usd, true
		}
	}
}

// showUsage shows how full the context window is, and what the session has cost.
func (s *session) showUsage() {
	u := &protocol.UsageUpdate{Used: int64(s.used)}
	if s.opened.Window != nil {
		u.Size = int64(s.opened.Window())
	}
	if s.priced {
		u.Cost = &protocol.Cost{Amount: s.cost, Currency: "USD"}
	}
	s.update("usage_update", u)
}

func (s *session) showCompacted(e event.Event, b event.Compacted) {
	s.used = b.After
	if c := s.server.capabilities().Session; c != nil && c.Compaction != nil {
		s.update("compaction_update", &protocol.CompactionUpdate{
			CompactionID: fmt.Sprintf("%s-c%d", s.ID(), e.Seq), Status: protocol.CompactionStatusCompleted, Summary: []protocol.ContentBlock{text(b.Content.Text())},
		})
	}
	s.showUsage()
}

func (s *session) showRetry(b event.LLMRetry) {
	if b.Discard { // what is shown of the answer is void: the next one is another message
		s.streamed = false
		s.messages++
	}
	wait := ""
	if b.WaitMS > 0 {
		wait = fmt.Sprintf("trying again in %.0f s", float64(b.WaitMS)/1000)
	}
	s.notice("warning", b.Message, wait)
}

// notice shows a message that is not part of the conversation, if the client can.
func (s *session) notice(severity, title, description string) {
	if c := s.server.capabilities().Session; c != nil && c.Notices != nil {
		s.update("notice", &protocol.Notice{Severity: protocol.NoticeSeverity(severity), Title: title, Description: description})
	}
}

// finish hands the result of a run to the prompt that waits for it.
func (s *session) finish(b event.Result) {
	s.calls = map[string]*call{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.results[b.Run]; waiting != nil {
		waiting <- b
		delete(s.results, b.Run)
	}
}
