package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/schema"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Sampler asks the model of a session for a plugin. The session pays.
type Sampler func(ctx context.Context, session core.SessionInfo, by string, req *model.Request) (*model.Response, error)

const (
	maxForm        = 64 << 10 // bytes of a form's schema
	maxFormFields  = 50
	maxSampleBytes = 1 << 20 // of the messages to the model
)

// form answers the plugin's question with a form.
func (c *conversation) form(ctx context.Context, q *toolproto.Ask) error {
	answer := &toolproto.Answer{Reason: core.ErrNonInteractive.Error()}
	if c.callbacks.form != nil {
		asking, done := c.whileAlive(ctx)
		answer = c.callbacks.form(asking, q)
		done()
	}
	answer.Id = q.Id
	return c.reply(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Answer{Answer: answer}})
}

// sample answers the plugin's request to the model.
func (c *conversation) sample(ctx context.Context, s *toolproto.Sample) error {
	answer := refuse("a plugin can ask the model only during a call of a tool that declares it")
	if c.callbacks.sample != nil {
		asking, done := c.whileAlive(ctx)
		answer = c.callbacks.sample(asking, s)
		done()
	}
	answer.Id = s.Id
	return c.reply(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Sampled{Sampled: answer}})
}

func refuse(format string, args ...any) *toolproto.Sampled {
	return &toolproto.Sampled{Code: string(core.CodePermission), Text: fmt.Sprintf(format, args...)}
}

// form asks the user, naming the plugin.
func (p *Plugin) form(ctx context.Context, call *core.Call, q *toolproto.Ask) *toolproto.Answer {
	if err := checkForm(q.Schema); err != nil {
		return &toolproto.Answer{Reason: "the form is invalid: " + err.Error()}
	}
	if call.Ask == nil {
		return &toolproto.Answer{Reason: core.ErrNonInteractive.Error()}
	}
	a, err := call.Ask(ctx, core.Question{
		Kind: core.QuestionForm, Title: fmt.Sprintf("The plugin %s asks: %s", p.name, shorten(cleanLine(q.Title), 200)),
		Detail: shorten(cleanText(q.Detail), 4000), Schema: q.Schema,
	})
	if err != nil {
		return &toolproto.Answer{Reason: err.Error()}
	}
	if len(a.Values) == 0 {
		return &toolproto.Answer{Reason: a.Reason}
	}
	values, err := schema.Fill(q.Schema, a.Values)
	if err != nil {
		return &toolproto.Answer{Reason: err.Error()}
	}
	data, err := json.Marshal(values)
	if err != nil {
		return &toolproto.Answer{Reason: err.Error()}
	}
	return &toolproto.Answer{Answered: true, Values: data}
}

// checkForm checks that a form is one that every user interface can show.
func checkForm(form json.RawMessage) error {
	if len(form) > maxForm || string(form) != cleanText(string(form)) {
		return fmt.Errorf("expected at most %d bytes without control characters", maxForm)
	}
	var s struct {
		Type       string
		Properties map[string]struct {
			Type  any
			Items struct{ Type string }
		}
	}
	if err := json.Unmarshal(form, &s); err != nil {
		return err
	}
	if s.Type != "object" || len(s.Properties) == 0 || len(s.Properties) > maxFormFields {
		return fmt.Errorf(`expected "type": "object" with 1 to %d properties`, maxFormFields)
	}
	for name, p := range s.Properties {
		if kind, _ := p.Type.(string); !slices.Contains([]string{"string", "number", "integer", "boolean"}, kind) && (kind != "array" || p.Items.Type != "string") {
			return fmt.Errorf("the field %q has the type %v: expected string, number, integer, boolean or a list of strings", name, p.Type)
		}
	}
	_, err := schema.Parse(form)
	return err
}

// sample asks the model for a call, within the manifest's budget. That the call may
// do so was decided with its permission.
func (t *tool) sample(ctx context.Context, call *core.Call, s *toolproto.Sample, requests int) *toolproto.Sampled {
	p := t.plugin
	budget, ask := p.Spec().Manifest.Model, p.host.sample
	most := budget.Requests
	if most == 0 {
		most = modelRequests
	}
	switch {
	case !t.spec.AsksModel || budget.MaxTokens == 0:
		return refuse("the tool %s does not declare that it asks the model", t.def.Name)
	case ask == nil:
		return refuse("there is no model to ask")
	case requests > most:
		return refuse("a call may ask the model %d times at most", most)
	}
	req := &model.Request{System: s.System, MaxTokens: budget.MaxTokens}
	if s.MaxTokens > 0 {
		req.MaxTokens = min(req.MaxTokens, int(s.MaxTokens))
	}
	size := len(s.System)
	for _, m := range s.Messages {
		role := model.RoleUser
		if m.Assistant {
			role = model.RoleAssistant
		}
		size += len(m.Text)
		req.Messages = append(req.Messages, model.Message{Role: role, Parts: model.TextParts(m.Text)})
	}
	if len(s.Messages) == 0 || size > maxSampleBytes {
		return &toolproto.Sampled{Code: string(core.CodeValidation), Text: fmt.Sprintf("expected messages of at most %d bytes", maxSampleBytes)}
	}
	resp, err := ask(ctx, call.Session, "plugin "+p.name, req)
	if err != nil {
		code := core.CodeIO
		if errors.Is(err, context.Canceled) {
			code = core.CodeCancelled
		}
		return &toolproto.Sampled{Code: string(code), Text: "the model request failed: " + shorten(cleanLine(err.Error()), 500)}
	}
	return &toolproto.Sampled{
		Text: resp.Parts.Text(), Model: resp.Model, Truncated: resp.Stop == model.StopMaxTokens,
		InputTokens: int64(resp.Usage.Input), OutputTokens: int64(resp.Usage.Output),
	}
}
