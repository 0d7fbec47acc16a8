package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Choose asks the user to choose one of the options, and returns it. An error says
// that there is no answer, such as when the agent is not interactive; return it for the
// model. The call's timeout does not run meanwhile.
func (c *Context) Choose(title, detail string, options ...string) (string, error) {
	return c.field(title, detail, map[string]any{"type": "string", "enum": options})
}

// AskText asks the user for a line of text, which may be proposed. See Choose.
func (c *Context) AskText(title, detail, proposal string) (string, error) {
	field := map[string]any{"type": "string"}
	if proposal != "" {
		field["default"] = valid(proposal)
	}
	return c.field(title, detail, field)
}

// field asks for one string.
func (c *Context) field(title, detail string, field map[string]any) (string, error) {
	field["title"] = "answer"
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"answer": field}, "required": []string{"answer"}})
	if err != nil {
		return "", err
	}
	var form struct{ Answer string }
	err = c.form(title, detail, schema, &form)
	return form.Answer, err
}

// AskForm asks the user to fill in a form: the struct that into points to, with
// fields that are strings, numbers or booleans, and the tags of a tool's arguments.
// See Choose.
//
//	form := struct {
//		Host  string `json:"host" jsonschema:"where to deploy"`
//		Stage string `json:"stage" enum:"test,live" default:"test"`
//	}{}
//	if err := ctx.AskForm("Where to deploy?", "", &form); err != nil {
//		return "", err
//	}
func (c *Context) AskForm(title, detail string, into any) error {
	t := reflect.TypeOf(into)
	if t == nil || t.Kind() != reflect.Pointer {
		return fmt.Errorf("a form must be a pointer to a struct, not %T", into)
	}
	s, err := infer(t.Elem())
	if err != nil {
		return err
	}
	schema, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return c.form(title, detail, schema, into)
}

func (c *Context) form(title, detail string, schema []byte, into any) error {
	if err := c.conversation.needs(toolproto.FeatureQuestions, "ask with choices and forms"); err != nil {
		return err
	}
	f, err := c.conversation.ask(c, func(id string) *toolproto.PluginFrame {
		q := &toolproto.Ask{Id: id, Title: valid(title), Detail: valid(detail), Schema: schema}
		return &toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Ask{Ask: q}}
	})
	if err != nil {
		return err
	}
	a := f.GetAnswer()
	switch {
	case !a.GetAnswered() && a.GetReason() != "":
		return Errorf(Permission, "no answer: %s", a.Reason)
	case !a.GetAnswered():
		return Errorf(Permission, "no answer: the user declined")
	}
	return json.Unmarshal(a.Values, into)
}

// Message is a message of a [Prompt].
type Message struct {
	Assistant bool // said by the model, else by the user
	Text      string
}

// Prompt is a request to the model of the session.
type Prompt struct {
	System    string
	Messages  []Message
	MaxTokens int // of the answer; 0 = what the manifest grants
}

// Completion is the model's answer.
type Completion struct {
	Text         string
	Model        string
	Truncated    bool // at the limit of tokens
	InputTokens  int
	OutputTokens int
}

// AskModel asks the model of the session, which pays for it. The tool needs the
// option [AsksModel], and the manifest in plugin.json "model".
func (c *Context) AskModel(p Prompt) (Completion, error) {
	if err := c.conversation.needs(toolproto.FeatureModel, "let plugins ask its model"); err != nil {
		return Completion{}, err
	}
	f, err := c.conversation.ask(c, func(id string) *toolproto.PluginFrame {
		s := &toolproto.Sample{Id: id, System: valid(p.System), MaxTokens: int64(p.MaxTokens)}
		for _, m := range p.Messages {
			s.Messages = append(s.Messages, &toolproto.Sample_Message{Assistant: m.Assistant, Text: valid(m.Text)})
		}
		return &toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Sample{Sample: s}}
	})
	if err != nil {
		return Completion{}, err
	}
	a := f.GetSampled()
	if a.GetCode() != "" {
		return Completion{}, Errorf(Code(a.Code), "%s", a.Text)
	}
	return Completion{a.GetText(), a.GetModel(), a.GetTruncated(), int(a.GetInputTokens()), int(a.GetOutputTokens())}, nil
}

// AsksModel declares that calls of the tool may ask the model with
// [Context.AskModel]. The host checks plugin(NAME/model) with the permission of each call.
func AsksModel() ToolOption { return func(t *toolproto.Tool) { t.AsksModel = true } }
