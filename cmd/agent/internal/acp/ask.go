package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
)

// ask puts a question to the client, and answers it with what comes back. It comes
// after the tool call that it is about, as both come from the events.
func (s *session) ask(q event.Question, callID string) {
	use := event.ToolUse{Name: q.Tool}
	if c := s.calls[callID]; c != nil {
		use = c.use
	} else if callID = s.callOf(q); s.calls[callID] != nil {
		use = s.calls[callID].use
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.asked[q.QID] = cancel
	s.mu.Unlock()
	s.asking.Go(func() {
		defer s.answered(q.QID)
		var answer host.Command
		switch core.QuestionKind(q.Kind) {
		case core.QuestionForm:
			answer = s.askForm(ctx, q, callID)
		case core.QuestionURL:
			answer = s.askURL(ctx, q, callID)
		default:
			answer = s.askPermission(ctx, q, callID, use)
		}
		if ctx.Err() != nil || s.server.conn.Gone() {
			return // withdrawn, or answered otherwise; or nobody has answered
		}
		answer.Type, answer.Question = "answer", q.QID
		if _, err := s.Do(ctx, answer); err != nil && ctx.Err() == nil {
			s.notice("error", "The answer could not be taken", err.Error())
		}
	})
}

// callOf returns the ID of the call that a question without one is shown with: that
// of the running tool which asks, or else one that is made for it.
func (s *session) callOf(q event.Question) string {
	if len(q.AgentPath) == 0 {
		for id, c := range s.calls {
			if c.use.Name == q.Tool && !c.ended {
				return id
			}
		}
	}
	title := q.Title
	if len(q.AgentPath) > 0 {
		title = strings.Join(q.AgentPath, "/") + ": " + title
	}
	s.update("tool_call", &protocol.ToolCall{
		ToolCallID: q.QID, Title: title, Kind: kindOf(q.Tool), Status: protocol.ToolCallStatusPending, Locations: places(q.Accesses),
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, q.QID)
	return q.QID
}

// answered ends the question at the client. A call that was made for it ends, too.
func (s *session) answered(qid string) {
	s.mu.Lock()
	cancel := s.asked[qid]
	delete(s.asked, qid)
	at := slices.Index(s.made, qid)
	if at >= 0 {
		s.made = slices.Delete(s.made, at, at+1)
	}
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if at >= 0 {
		s.update("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: qid, Status: protocol.ToolCallStatusCompleted})
	}
}

// option is an answer that the client offers.
type option struct {
	protocol.PermissionOption
	answer host.Command
	reject []string // rules to deny from now on
}

// askPermission asks for one of the choices.
func (s *session) askPermission(ctx context.Context, q event.Question, callID string, use event.ToolUse) host.Command {
	u := protocol.ToolCallUpdate{ToolCallID: callID, Title: q.Title, Kind: kindOf(q.Tool), Locations: places(q.Accesses)}
	if s.opened.Preview != nil && use.Args != "" {
		if changes, err := s.opened.Preview(ctx, model.ToolCall{ID: callID, Name: use.Name, Args: use.Args}); err == nil {
			u.Content = previews(changes)
		}
	}
	var in struct{ Plan string } // that the model submits in mode plan
	if json.Unmarshal([]byte(use.Args), &in) == nil && in.Plan != "" {
		u.Content = append(u.Content, contentOf(text(in.Plan)))
	}
	if q.Detail != "" {
		u.Content = append(u.Content, contentOf(text(q.Detail)))
	}
	return s.choose(ctx, u, s.choices(q))
}

// choose asks the client to choose an option.
func (s *session) choose(ctx context.Context, u protocol.ToolCallUpdate, options []option) host.Command {
	r := protocol.RequestPermissionRequest{SessionID: s.ID(), ToolCall: u}
	for i := range options {
		options[i].OptionID = fmt.Sprint(i, "-", options[i].OptionID) // unique
		r.Options = append(r.Options, options[i].PermissionOption)
	}
	denied := options[slices.IndexFunc(options, func(o option) bool { return o.Kind == protocol.PermissionOptionKindRejectOnce })].answer
	var out protocol.RequestPermissionResponse
	if err := s.server.conn.Call(ctx, protocol.MethodSessionRequestPermission, r, &out); err != nil {
		denied.Reason = "the editor could not ask the user: " + err.Error()
		return denied
	}
	chosen, ok := out.Outcome.Value.(*protocol.SelectedPermissionOutcome)
	if !ok {
		return denied
	}
	at := slices.IndexFunc(options, func(o option) bool { return o.OptionID == chosen.OptionID })
	if at < 0 {
		denied.Reason = fmt.Sprintf("the editor answered with %q, not one of the options", chosen.OptionID)
		return denied
	}
	if rules := options[at].reject; len(rules) > 0 {
		if err := s.opened.Reject(ctx, rules); err != nil {
			s.notice("error", "The rule could not be added", err.Error())
		}
	}
	return options[at].answer
}

// choices returns the options of a permission request, or of a question to confirm.
// The lasting ones name the rules that they add.
func (s *session) choices(q event.Question) (list []option) {
	add := func(id, name string, kind protocol.PermissionOptionKind, answer host.Command, reject ...string) {
		list = append(list, option{protocol.PermissionOption{OptionID: id, Name: name, Kind: kind}, answer, reject})
	}
	for _, c := range q.Choices {
		answer := host.Command{Choice: core.Choice(c)}
		switch answer.Choice {
		case core.ChoiceOnce:
			add(c, "Allow once", protocol.PermissionOptionKindAllowOnce, answer)
		case core.ChoiceYes:
			add(c, "Yes", protocol.PermissionOptionKindAllowOnce, answer)
		case core.ChoiceNo:
			add(c, "No", protocol.PermissionOptionKindRejectOnce, answer)
		case core.ChoiceSession:
			name := "Allow for this session"
			if len(q.Offers) > 0 {
				name += ": " + ruleText(q.Offers[0].Rules)
			}
			add(c, name, protocol.PermissionOptionKindAllowAlways, answer)
		case core.ChoiceAlways:
			for i, o := range q.Offers {
				answer.Offer = i
				add(c, "Always allow: "+ruleText(o.Rules), protocol.PermissionOptionKindAllowAlways, answer)
			}
		case core.ChoiceDeny:
			add(c, "Reject", protocol.PermissionOptionKindRejectOnce, answer)
			if len(q.Offers) > 0 && s.opened.Reject != nil {
				rules := q.Offers[0].Rules
				answer.Reason = "the user rejects it always, by the rule " + ruleText(rules)
				add("never", "Always reject: "+ruleText(rules), protocol.PermissionOptionKindRejectAlways, answer, rules...)
			}
		default:
			add(c, c, protocol.PermissionOptionKindAllowOnce, answer)
		}
	}
	if !slices.ContainsFunc(list, func(o option) bool { return o.Kind == protocol.PermissionOptionKindRejectOnce }) {
		add("cancel", "Cancel", protocol.PermissionOptionKindRejectOnce, host.Command{})
	}
	return list
}

func ruleText(rules []string) string { return strings.Join(rules, ", ") }

// askForm asks to fill in a form, if the client can. Of a client that cannot, the user
// can choose if the form is one choice.
func (s *session) askForm(ctx context.Context, q event.Question, callID string) host.Command {
	declined := host.Command{Choice: core.ChoiceNo}
	schema, ok := formSchema(q.Schema)
	if !ok {
		return declined
	}
	if c := s.server.capabilities().Elicitation; c == nil || c.Form == nil {
		return s.chooseValue(ctx, q, callID, schema)
	}
	r := protocol.CreateElicitationRequest{Mode: "form", SessionID: s.ID(), ToolCallID: callID, Message: message(q), RequestedSchema: schema}
	var out protocol.CreateElicitationResponse
	if err := s.server.conn.Call(ctx, protocol.MethodElicitationCreate, r, &out); err != nil || out.Action != "accept" {
		return declined
	}
	return host.Command{Choice: core.ChoiceYes, Values: out.Content}
}

func message(q event.Question) string { return strings.TrimSpace(q.Title + "\n\n" + q.Detail) }

// formSchema returns a schema of a form as the protocol takes it.
func formSchema(raw json.RawMessage) (*protocol.ElicitationSchema, bool) {
	var schema protocol.ElicitationSchema
	if json.Unmarshal(raw, &schema) != nil {
		return nil, false
	}
	schema.Type = protocol.ElicitationSchemaTypeObject
	for name, p := range schema.Properties {
		if _, unknown := p.Value.(json.RawMessage); unknown || p.Tag == "" {
			return nil, false
		}
		if required := slices.Contains(schema.Required, name); !required && len(schema.Properties) == 1 {
			schema.Required = []string{name}
		}
	}
	return &schema, true
}

// chooseValue asks for the value of a form's only member, one of a few.
func (s *session) chooseValue(ctx context.Context, q event.Question, callID string, schema *protocol.ElicitationSchema) host.Command {
	var options []option
	for name, p := range schema.Properties {
		v, ok := p.Value.(*protocol.StringPropertySchema)
		if !ok || len(schema.Properties) > 1 {
			break
		}
		for i, value := range v.Enum {
			options = append(options, option{
				PermissionOption: protocol.PermissionOption{OptionID: fmt.Sprint(i), Name: value, Kind: protocol.PermissionOptionKindAllowOnce},
				answer:           host.Command{Choice: core.ChoiceYes, Values: map[string]any{name: value}},
			})
		}
	}
	declined := host.Command{Choice: core.ChoiceNo}
	if len(options) == 0 {
		return declined
	}
	options = append(options, option{protocol.PermissionOption{OptionID: "none", Name: "No answer", Kind: protocol.PermissionOptionKindRejectOnce}, declined, nil})
	return s.choose(ctx, protocol.ToolCallUpdate{ToolCallID: callID, Title: q.Title, Content: []protocol.ToolCallContent{contentOf(text(message(q)))}}, options)
}

// askURL asks to open a page and to say when that is done.
func (s *session) askURL(ctx context.Context, q event.Question, callID string) host.Command {
	declined := host.Command{Choice: core.ChoiceNo}
	if c := s.server.capabilities().Elicitation; c == nil || c.URL == nil {
		u := protocol.ToolCallUpdate{ToolCallID: callID, Title: q.Title, Content: []protocol.ToolCallContent{contentOf(text(message(q) + "\n\n" + q.URL))}}
		return s.choose(ctx, u, []option{
			{protocol.PermissionOption{OptionID: "yes", Name: "I have opened it", Kind: protocol.PermissionOptionKindAllowOnce}, host.Command{Choice: core.ChoiceYes}, nil},
			{protocol.PermissionOption{OptionID: "no", Name: "Cancel", Kind: protocol.PermissionOptionKindRejectOnce}, declined, nil},
		})
	}
	r := protocol.CreateElicitationRequest{Mode: "url", SessionID: s.ID(), ToolCallID: callID, Message: message(q), ElicitationID: q.QID, URL: q.URL}
	var out protocol.CreateElicitationResponse
	err := s.server.conn.Call(ctx, protocol.MethodElicitationCreate, r, &out)
	if err != nil || out.Action != "accept" {
		return declined
	}
	_ = s.server.conn.Notify(protocol.MethodElicitationComplete, protocol.CompleteElicitationNotification{ElicitationID: q.QID})
	return host.Command{Choice: core.ChoiceYes}
}
