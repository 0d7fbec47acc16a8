package langchain

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// complete sets the URL and the headers, and adds to the body what langchaingo
// does not support.
func (x *exchange) complete(r *http.Request) error {
	p := x.provider
	body, err := x.body(r.Body)
	if err != nil {
		return err
	}
	r.URL = p.url(x.model)
	r.Host = r.URL.Host
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Del("Authorization") // langchaingo's placeholder for the key
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, err = r.GetBody()
	return err
}

// body completes langchaingo's body. Its members are not decoded, so that nothing
// in them is reordered or rounded; tools and messages follow, the longest last.
func (x *exchange) body(original io.Reader) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.NewDecoder(original).Decode(&fields); err != nil {
		return nil, x.provider.Wrap(model.CodeInvalidRequest, "langchaingo's request body is invalid", err)
	}
	if err := x.patch(fields); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "%q:%s,", name, fields[name])
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if tools := x.provider.tools(x.req.Tools); len(tools) > 0 {
		b.WriteString(`"tools":`)
		if err := enc.Encode(tools); err != nil {
			return nil, x.provider.Wrap(model.CodeInvalidRequest, "a tool's schema is not valid JSON", err)
		}
		b.WriteByte(',')
	}
	b.WriteString(`"messages":`)
	if err := x.provider.conversation.encode(&b, x.req); err != nil {
		return nil, x.provider.Wrap(model.CodeInvalidRequest, "the conversation cannot be encoded", err)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// patch changes the members other than messages and tools.
func (x *exchange) patch(fields map[string]json.RawMessage) error {
	req, p := x.req, x.provider
	delete(fields, "messages")
	delete(fields, "tools")
	if req.Temperature == nil {
		delete(fields, "temperature") // langchaingo sends 0, which reasoning models reject
	}
	fields["stream"] = json.RawMessage(`true`)
	if !p.dialect.noStreamOptions {
		fields["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	}
	if req.Effort != "" {
		effort, ok := p.dialect.efforts[req.Effort]
		if !ok {
			effort = string(req.Effort)
		}
		fields["reasoning_effort"], _ = json.Marshal(effort) // a string always marshals
	}
	if len(req.OutputSchema) > 0 {
		if !json.Valid(req.OutputSchema) {
			return p.Wrap(model.CodeInvalidRequest, "the schema of the answer is not valid JSON", nil)
		}
		fields["response_format"] = fmt.Appendf(nil, `{"type":"json_schema","json_schema":{"name":"answer","schema":%s}}`, req.OutputSchema)
	}
	return x.addOptions(fields)
}

// addOptions adds the provider options of the request.
func (x *exchange) addOptions(fields map[string]json.RawMessage) error {
	name := x.provider.Info().Name
	raw, ok := x.req.ProviderOptions[name]
	if !ok {
		return nil
	}
	var options map[string]json.RawMessage
	if err := json.Unmarshal(raw, &options); err != nil {
		return x.provider.Wrap(model.CodeInvalidRequest, "the provider options are not a JSON object", err)
	}
	for key, value := range options {
		switch key {
		case "model", "messages", "tools", "stream", "stream_options", "n":
			return x.provider.Wrap(model.CodeInvalidRequest, fmt.Sprintf("the provider options may not set %q", key), nil)
		}
		fields[key] = value
	}
	return nil
}

type wireTool struct {
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// tools returns the tools. Deferred ones are included, as adding them later
// would change the cached prefix.
func (p *chat) tools(defs []model.ToolDef) []wireTool {
	tools := make([]wireTool, len(defs))
	for i, d := range defs {
		tools[i] = wireTool{"function", wireFunction{d.Name, d.Description, p.schemas.Schema(d.Schema)}}
	}
	return tools
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // a string, []wirePart or nil
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wirePart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *wireImage `json:"image_url,omitempty"`
}

type wireImage struct {
	URL string `json:"url"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireCallBody `json:"function"`
}

type wireCallBody struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// messages returns message i of a conversation in the API's form: none or
// several messages. Images of tool results wait in images for the end of the
// results: the API accepts them only from the user, and results must follow their
// calls directly.
func (e encoding) messages(all []model.Message, i int, images *[]wirePart) []wireMessage {
	var out []wireMessage
	switch m := all[i]; m.Role {
	case model.RoleAssistant:
		if msg, ok := e.assistant(m.Parts); ok {
			out = append(out, msg)
		}
	case model.RoleTool:
		out = e.appendResults(out, m.Parts, images)
		more := i+1 < len(all) && all[i+1].Role == model.RoleTool
		if len(*images) > 0 && !more {
			out = append(out, wireMessage{Role: "user", Content: *images})
			*images = nil
		}
	default:
		out = append(out, wireMessage{Role: "user", Content: userContent(m.Parts)})
	}
	return out
}

func userContent(parts model.Parts) any {
	if len(parts) == 1 {
		if t, ok := parts[0].(model.Text); ok {
			return t.Text
		}
	}
	content := make([]wirePart, 0, len(parts))
	for _, p := range parts {
		if part, ok := imagePart(p); ok {
			content = append(content, part)
		} else if text := wire.Text(p); text != "" {
			content = append(content, wirePart{Type: "text", Text: text})
		}
	}
	if len(content) == 0 {
		return ""
	}
	return content
}

func imagePart(p model.Part) (wirePart, bool) {
	img, ok := p.(model.Image)
	if !ok || len(img.Data) == 0 {
		return wirePart{}, false
	}
	return wirePart{Type: "image_url", ImageURL: &wireImage{dataURL(img)}}, true
}

func dataURL(img model.Image) string {
	return "data:" + img.MediaType + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
}

// joinText joins the texts of the parts, including those for other kinds.
func joinText(parts model.Parts, sep string) string {
	if len(parts) == 1 {
		return wire.Text(parts[0])
	}
	var texts []string
	for _, p := range parts {
		if t := wire.Text(p); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, sep)
}

// assistant returns false for a message with nothing to send, such as one
// with reasoning only.
func (e encoding) assistant(parts model.Parts) (wireMessage, bool) {
	msg := wireMessage{Role: "assistant"}
	if text := joinText(parts, "\n\n"); text != "" {
		msg.Content = text
	}
	if e.reasoning {
		for _, p := range parts {
			if r, ok := p.(model.Reasoning); ok && r.Signature == "" { // signed ones are of other services
				msg.Reasoning += r.Text
			}
		}
	}
	for _, c := range parts.ToolCalls() {
		msg.ToolCalls = append(msg.ToolCalls, wireCall{e.id(c.ID), "function", wireCallBody{wire.CallName(c.Name), string(wire.Object(c.Args))}})
	}
	return msg, msg.Content != nil || msg.ToolCalls != nil
}

// wireID returns an id that the API accepts: those of other providers can be
// longer than 40 characters.
func wireID(id string) string {
	const maxLength = 40
	if len(id) <= maxLength {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// appendResults adds a message for each result. Images are added to images.
func (e encoding) appendResults(out []wireMessage, parts model.Parts, images *[]wirePart) []wireMessage {
	for _, p := range parts {
		r, ok := p.(model.ToolResult)
		if !ok {
			continue
		}
		text := resultText(r, func(img model.Image) string {
			part, ok := imagePart(img)
			if !ok {
				return wire.Text(img)
			}
			*images = append(*images, wirePart{Type: "text", Text: "Image of the result of " + r.Name + ":"}, part)
			return "[image: see the next user message]"
		})
		out = append(out, wireMessage{Role: "tool", ToolCallID: e.id(r.CallID), Content: text})
	}
	return out
}

// resultText returns a result as text, with what image returns for images. The API
// has no field for a failure, so the text says so.
func resultText(r model.ToolResult, image func(model.Image) string) string {
	var texts []string
	for _, p := range r.Content {
		text := ""
		if img, ok := p.(model.Image); ok {
			text = image(img)
		} else {
			text = wire.Text(p)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n")
	if r.IsError && !strings.HasPrefix(strings.ToLower(text), "error") {
		text = "Error: " + text
	}
	return text
}
