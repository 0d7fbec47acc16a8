package openai

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// post encodes a request. The conversation comes last, so that a longer one
// begins with the bytes of a shorter one.
func (p *provider) post(name string, req *model.Request) (wire.Post, error) {
	options, err := p.Options(req, "model", "stream", "store", "instructions", "input", "tools")
	if err != nil {
		return wire.Post{}, err
	}
	b, err := wire.AppendMembers(make([]byte, 0, wire.BodySize(req.Messages)), members(name, req), options)
	if err != nil {
		return wire.Post{}, p.Wrap(model.CodeInvalidRequest, "the request cannot be encoded", err)
	}
	in := input{provider: p.Info().Name, model: name, b: append(b, `,"input":[`...)}
	for _, m := range req.Messages {
		in.message(m)
	}
	return wire.Post{URL: p.URL("responses"), Body: append(in.b, "]}"...)}, nil
}

// members are the members of the body before the conversation.
func members(name string, req *model.Request) []wire.Member {
	list := []wire.Member{{Name: "model", Value: name}, {Name: "stream", Value: true}, {Name: "store", Value: false}}
	add := func(name string, value any, wanted bool) {
		if wanted {
			list = append(list, wire.Member{Name: name, Value: value})
		}
	}
	add("include", []string{"reasoning.encrypted_content"}, reasons(name))
	if req.Effort != "" {
		reasoning := map[string]string{"effort": effort(name, req.Effort)}
		if req.Effort != model.EffortNone {
			reasoning["summary"] = "auto"
		}
		add("reasoning", reasoning, true)
	}
	add("max_output_tokens", req.MaxTokens, req.MaxTokens > 0)
	add("temperature", req.Temperature, req.Temperature != nil)
	add("text", map[string]any{"format": map[string]any{"type": "json_schema", "name": "answer", "schema": req.OutputSchema}}, len(req.OutputSchema) > 0)
	add("tool_choice", toolChoice(req.ToolChoice), len(req.Tools) > 0 && req.ToolChoice != "" && req.ToolChoice != model.ToolChoiceAuto)
	add("tools", tools(req.Tools), len(req.Tools) > 0)
	add("instructions", req.System, req.System != "")
	return list
}

// family matches the models that reason: the o series and GPT-5 and later, but
// for the chat variants.
var family = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:o\d|gpt-(?:[5-9]|\d\d)|codex)`) })

// reasons reports whether a model gives encrypted reasoning. Others refuse to
// be asked for it.
func reasons(name string) bool {
	return family().MatchString(name) && !strings.Contains(name, "chat")
}

// first matches the models of the first generations, whose efforts differ.
var first = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:o\d|gpt-5(?:-|$))`) })

// effort returns the nearest effort that a model has. See
// https://platform.openai.com/docs/guides/reasoning.
func effort(name string, e model.Effort) string {
	if first().MatchString(name) {
		switch {
		case e == model.EffortXHigh:
			return "high"
		case e == model.EffortNone && strings.HasPrefix(name, "o"):
			return "low"
		case e == model.EffortNone:
			return "minimal"
		}
	}
	return string(e)
}

func toolChoice(c model.ToolChoice) any {
	if c == model.ToolChoiceNone || c == model.ToolChoiceRequired {
		return string(c)
	}
	return map[string]string{"type": "function", "name": string(c)}
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// tools returns the tools, also deferred ones: those that come later would
// change the cached prefix.
func tools(defs []model.ToolDef) []tool {
	list := make([]tool, len(defs))
	for i, d := range defs {
		list[i] = tool{"function", d.Name, d.Description, wire.Schema(d), false}
	}
	return list
}

// input writes the items of a conversation.
type input struct {
	provider, model string
	b               []byte
	begun           bool
}

// item begins an item.
func (in *input) item(kind string) {
	if in.begun {
		in.b = append(in.b, ',')
	}
	in.begun = true
	in.b = wire.AppendField(append(in.b, '{'), "type", kind)
}

func (in *input) field(name, value string) {
	in.b = wire.AppendField(append(in.b, ','), name, value)
}

func (in *input) message(m model.Message) {
	switch m.Role {
	case model.RoleAssistant:
		in.assistant(m.Parts)
	case model.RoleTool:
		for _, part := range m.Parts {
			if r, ok := part.(model.ToolResult); ok {
				in.result(r)
			}
		}
	default:
		in.item("message")
		in.field("role", "user")
		in.b = append(in.b, `,"content":`...)
		in.content(m.Parts, false)
		in.b = append(in.b, '}')
	}
}

// assistant writes what the model said. Reasoning stands before what it led to,
// and is refused alone: an answer that broke off may end with it.
func (in *input) assistant(parts model.Parts) {
	last := -1
	for i, part := range parts {
		switch part.(type) {
		case model.Text, model.ToolCall:
			last = i
		}
	}
	for i, part := range parts {
		switch part := part.(type) {
		case model.Opaque:
			if part.Provider == in.provider && part.Model == in.model && i < last && json.Valid(part.Raw) {
				in.raw(part.Raw)
			}
		case model.ToolCall:
			in.item("function_call")
			in.field("call_id", callID(part.ID))
			in.field("name", part.Name)
			args := part.Args
			if strings.TrimSpace(args) == "" {
				args = "{}"
			}
			in.field("arguments", args)
			in.b = append(in.b, '}')
		default:
			in.said(part)
		}
	}
}

func (in *input) raw(item json.RawMessage) {
	if in.begun {
		in.b = append(in.b, ',')
	}
	in.begun = true
	in.b = append(in.b, item...)
}

// said writes a text of the model.
func (in *input) said(part model.Part) {
	text := text(part)
	if text == "" {
		return
	}
	in.item("message")
	in.field("role", "assistant")
	in.b = append(in.b, `,"content":[{"type":"output_text"`...)
	in.field("text", text)
	in.b = append(in.b, "}]}"...)
}

func text(part model.Part) string {
	if t, ok := part.(model.Text); ok {
		return t.Text
	}
	return wire.Placeholder(part)
}

// callID returns an id that the API takes.
func callID(id string) string { return wire.CallID(id, "call_", 64) }

// result writes the result of a call. The API has no field for a failure, so
// the text tells.
func (in *input) result(r model.ToolResult) {
	in.item("function_call_output")
	in.field("call_id", callID(r.CallID))
	in.b = append(in.b, `,"output":`...)
	if plain, ok := onlyText(r.Content); ok {
		if r.IsError && !strings.HasPrefix(strings.ToLower(plain), "error") {
			plain = "Error: " + plain
		}
		in.b = wire.AppendString(in.b, plain)
	} else {
		in.content(r.Content, r.IsError)
	}
	in.b = append(in.b, '}')
}

// onlyText returns the text of content without images that can be shown.
func onlyText(parts model.Parts) (string, bool) {
	var texts []string
	for _, part := range parts {
		if img, ok := part.(model.Image); ok && len(img.Data) > 0 {
			return "", false
		}
		if t := text(part); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n"), true
}

// content writes what the user or a tool says.
func (in *input) content(parts model.Parts, isError bool) {
	in.b = append(in.b, '[')
	begin := len(in.b)
	open := func(kind string) {
		if len(in.b) > begin {
			in.b = append(in.b, ',')
		}
		in.b = wire.AppendField(append(in.b, '{'), "type", kind)
	}
	if isError {
		open("input_text")
		in.b = append(in.b, `,"text":"Error:"}`...)
	}
	for _, part := range parts {
		if img, ok := part.(model.Image); ok && len(img.Data) > 0 {
			open("input_image")
			in.b = wire.AppendField(append(in.b, ','), "detail", "auto")
			in.b = append(in.b, `,"image_url":"data:`...)
			in.b = append(append(in.b, mediaType(img.MediaType)...), ";base64,"...)
			in.b = base64.StdEncoding.AppendEncode(in.b, img.Data)
			in.b = append(in.b, `"}`...)
		} else if t := text(part); t != "" {
			open("input_text")
			in.field("text", t)
			in.b = append(in.b, '}')
		}
	}
	if len(in.b) == begin {
		open("input_text")
		in.b = append(in.b, `,"text":""}`...)
	}
	in.b = append(in.b, ']')
}

// mediaType returns the type without what would need escapes.
func mediaType(t string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, t)
}
