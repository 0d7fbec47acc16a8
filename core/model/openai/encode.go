package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

// post encodes a request. The conversation is last, so that the body of a longer
// one begins with that of a shorter one.
func (p *provider) post(name string, req *model.Request) (wire.Post, error) {
	options, err := p.Options(req, "model", "stream", "store", "instructions", "input", "tools", "previous_response_id", "conversation", "background")
	if err != nil {
		return wire.Post{}, err
	}
	list, err := p.members(name, req, options)
	if err != nil {
		return wire.Post{}, p.Wrap(model.CodeInvalidRequest, "invalid provider options", err)
	}
	b, err := wire.AppendMembers(make([]byte, 0, size(req.Messages)), list, options)
	if err != nil {
		return wire.Post{}, p.Wrap(model.CodeInvalidRequest, "the request cannot be encoded", err)
	}
	in := input{provider: p.Info().Name, model: name, schemas: p.schemas, b: append(b, `,"input":[`...)}
	if searches(name, req.Tools) {
		in.searchable = req.Tools
	}
	for _, m := range req.Messages {
		in.message(m)
	}
	return wire.Post{URL: p.URL("responses"), Body: append(in.b, "]}"...)}, nil
}

// size estimates the length of the body in bytes.
func size(messages []model.Message) int {
	n := wire.BodySize(messages)
	for _, m := range messages {
		for _, part := range m.Parts {
			if state, ok := part.(model.Opaque); ok {
				n += len(state.Raw)
			}
		}
	}
	return n
}

// members returns the members of the body before the conversation. Options that
// are merged with them are removed from options.
func (p *provider) members(name string, req *model.Request, options map[string]json.RawMessage) ([]wire.Member, error) {
	j, err := merge(name, req, options)
	if err != nil {
		return nil, err
	}
	list := []wire.Member{{Name: "model", Value: name}, {Name: "stream", Value: true}, {Name: "store", Value: false}}
	add := func(name string, value any, wanted bool) {
		if wanted {
			list = append(list, wire.Member{Name: name, Value: value})
		}
	}
	add("include", j.include, len(j.include) > 0)
	add("reasoning", j.reasoning, len(j.reasoning) > 0)
	add("max_output_tokens", req.MaxTokens, req.MaxTokens > 0)
	add("temperature", req.Temperature, req.Temperature != nil)
	add("text", j.text, len(j.text) > 0)
	add("tool_choice", toolChoice(req.ToolChoice), len(req.Tools) > 0 && req.ToolChoice != "" && req.ToolChoice != model.ToolChoiceAuto)
	add("tools", p.tools(name, req.Tools), len(req.Tools) > 0)
	add("instructions", req.System, req.System != "")
	return list, nil
}

// merged are the members that the request and the options both set: an option
// for short answers must not drop the schema, nor one for include the encrypted
// reasoning.
type merged struct {
	include         []string
	reasoning, text map[string]any
}

func merge(name string, req *model.Request, options map[string]json.RawMessage) (merged, error) {
	j := merged{reasoning: map[string]any{}, text: map[string]any{}}
	if e := effort(name, req.Effort); e != "" {
		j.reasoning["effort"] = e
		if req.Effort != model.EffortNone {
			j.reasoning["summary"] = "auto"
		}
	}
	if len(req.OutputSchema) > 0 {
		j.text["format"] = map[string]any{"type": "json_schema", "name": "answer", "schema": req.OutputSchema}
	}
	for _, m := range []wire.Member{{Name: "include", Value: &j.include}, {Name: "reasoning", Value: &j.reasoning}, {Name: "text", Value: &j.text}} {
		if raw, ok := options[m.Name]; ok {
			if err := json.Unmarshal(raw, m.Value); err != nil {
				return j, fmt.Errorf("%s: %w", m.Name, err)
			}
			delete(options, m.Name)
		}
	}
	const state = "reasoning.encrypted_content"
	if (reasons(name) || j.reasoning["effort"] != nil) && !slices.Contains(j.include, state) {
		j.include = append(j.include, state)
	}
	return j, nil
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
	Deferred    bool            `json:"defer_loading,omitempty"`
}

// searchTool is the tool search of the API, run by the client.
type searchTool struct {
	Type        string          `json:"type"`
	Execution   string          `json:"execution"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// searches reports whether the model searches for deferred tools. Late ones do not
// count: they would change how the search was sent before.
func searches(name string, defs []model.ToolDef) bool {
	return searchesTools(name) &&
		slices.ContainsFunc(defs, func(d model.ToolDef) bool { return d.Deferred && !d.Late }) &&
		slices.ContainsFunc(defs, func(d model.ToolDef) bool { return d.Name == model.ToolSearch && !d.Deferred })
}

// tools returns the tools. Deferred ones are included, as adding them later would
// change the cached prefix, unless the model searches: then they are sent with
// the results of a search.
func (p *provider) tools(name string, defs []model.ToolDef) []any {
	search := searches(name, defs)
	list := make([]any, 0, len(defs))
	for _, d := range defs {
		switch {
		case search && d.Name == model.ToolSearch:
			list = append(list, searchTool{"tool_search", "client", d.Description, p.schemas.Schema(d.Schema)})
		case !d.Deferred || !search && !d.Late:
			list = append(list, tool{"function", d.Name, d.Description, p.schemas.Schema(d.Schema), false, false})
		}
	}
	return list
}

// input writes the items of a conversation.
type input struct {
	provider, model string
	b               []byte
	begun           bool
	searchable      []model.ToolDef // nil if the model does not search
	schemas         *adapt.Adapter
	searched        map[string]bool // IDs of search calls
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
			r, ok := part.(model.ToolResult)
			switch {
			case ok && in.searched[r.CallID]:
				in.foundTools(r)
			case ok:
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

// assistant writes a message of the model. The API rejects reasoning that nothing
// follows, with which an answer that broke off may end.
func (in *input) assistant(parts model.Parts) {
	last := len(parts) - 1
	for last >= 0 && !isOutput(parts[last]) {
		last--
	}
	phase := ""
	for i, part := range parts {
		switch part := part.(type) {
		case model.Opaque:
			if part.Provider != in.provider || part.Model != in.model || i > last {
				continue
			}
			if phase = phaseOf(part.Raw); phase == "" {
				in.raw(part.Raw)
			}
		case model.ToolCall:
			in.call(part)
		default:
			in.text(part, phase)
			phase = ""
		}
	}
}

// isOutput reports whether a part becomes an item other than reasoning.
func isOutput(part model.Part) bool {
	switch part := part.(type) {
	case model.Opaque:
		return false
	case model.ToolCall:
		return true
	default:
		return wire.Text(part) != ""
	}
}

// phased is a part with the phase of the message that follows it: commentary or
// final answer. Models do worse without it.
type phased struct {
	Phase string `json:"phase"`
}

// maxPhase limits a phased part, in bytes.
const maxPhase = 64

// phaseOf returns the phase of a phased part, and "" for an item. Items are longer
// than any phased part, even with more white space; they are not decoded.
func phaseOf(raw json.RawMessage) string {
	if len(raw) > 2*maxPhase {
		return ""
	}
	var p phased
	if json.Unmarshal(raw, &p) != nil {
		return ""
	}
	return p.Phase
}

// raw writes an item unchanged.
func (in *input) raw(item json.RawMessage) {
	if !bytes.HasPrefix(item, []byte("{")) {
		return
	}
	if in.begun {
		in.b = append(in.b, ',')
	}
	in.begun = true
	in.b = append(in.b, item...)
}

func (in *input) call(c model.ToolCall) {
	if in.searchable != nil && c.Name == model.ToolSearch {
		in.search(c)
		return
	}
	delete(in.searched, c.ID) // other services count IDs anew in each answer
	in.item("function_call")
	in.field("call_id", callID(c.ID))
	in.field("name", wire.CallName(c.Name))
	in.field("arguments", string(wire.Object(c.Args)))
	in.b = append(in.b, '}')
}

// search writes a search call.
func (in *input) search(c model.ToolCall) {
	if in.searched == nil {
		in.searched = map[string]bool{}
	}
	in.searched[c.ID] = true
	in.item("tool_search_call")
	in.field("call_id", callID(c.ID))
	in.field("execution", "client")
	in.field("status", "completed")
	args := json.RawMessage(c.Args)
	if !json.Valid(args) {
		args = json.RawMessage("{}")
	}
	in.b = append(append(append(in.b, `,"arguments":`...), args...), '}')
}

// foundTools writes the tools that a search has found and that still exist. The
// API has no place for text.
func (in *input) foundTools(r model.ToolResult) {
	list := []tool{}
	for _, part := range r.Content {
		ref, ok := part.(model.ToolReference)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(in.searchable, func(d model.ToolDef) bool { return d.Name == ref.Name }); i >= 0 {
			d := in.searchable[i]
			list = append(list, tool{"function", d.Name, d.Description, in.schemas.Schema(d.Schema), false, true})
		}
	}
	raw, err := wire.Marshal(list)
	if err != nil {
		raw = []byte("[]") // an invalid schema: the tool could not be called either
	}
	in.item("tool_search_output")
	in.field("call_id", callID(r.CallID))
	in.field("execution", "client")
	in.field("status", "completed")
	in.b = append(append(append(in.b, `,"tools":`...), raw...), '}')
}

// text writes a text of the model.
func (in *input) text(part model.Part, phase string) {
	text := wire.Text(part)
	if text == "" {
		return
	}
	in.item("message")
	in.field("role", "assistant")
	if phase != "" {
		in.field("phase", phase)
	}
	in.b = append(in.b, `,"content":[{"type":"output_text"`...)
	in.field("text", text)
	in.b = append(in.b, `,"annotations":[]}]}`...) // some compatible servers require it
}

// callID returns an ID that the API accepts.
func callID(id string) string { return wire.CallID(id, "call_", 64) }

// result writes the result of a call. The API has no field for a failure, so the
// text says so.
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

// onlyText returns the text of the parts, and false if there is an image to send.
func onlyText(parts model.Parts) (string, bool) {
	var texts []string
	for _, part := range parts {
		if img, ok := part.(model.Image); ok && len(img.Data) > 0 {
			return "", false
		}
		if t := wire.Text(part); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n"), true
}

// content writes the content of the user or of a tool.
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
		} else if t := wire.Text(part); t != "" {
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

// mediaType returns the type without characters that need escapes.
func mediaType(t string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, t)
}
