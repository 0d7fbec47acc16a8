package gemini

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// post encodes a request. The conversation is last, so that the body of a longer
// one begins with that of a shorter one.
func (p *provider) post(name string, req *model.Request) (wire.Post, error) {
	options, err := p.Options(req, "model", "contents", "systemInstruction")
	if err != nil {
		return wire.Post{}, err
	}
	members, err := p.members(name, req, options)
	if err != nil {
		return wire.Post{}, err
	}
	b, err := wire.AppendMembers(make([]byte, 0, wire.BodySize(req.Messages)), members, options)
	if err != nil {
		return wire.Post{}, p.Wrap(model.CodeInvalidRequest, "the request cannot be encoded", err)
	}
	if len(b) == 0 {
		b = append(b, '{')
	} else {
		b = append(b, ',')
	}
	c := contents{provider: p.Info().Name, model: name, b: append(b, `"contents":[`...)}
	c.messages(req.Messages)
	return wire.Post{URL: p.url(name, "streamGenerateContent"), Body: append(c.b, "]}"...)}, nil
}

// members returns the members of the body before the conversation. Options that
// are merged with them are removed from options.
func (p *provider) members(name string, req *model.Request, options map[string]json.RawMessage) ([]wire.Member, error) {
	generation := generation(name, req)
	if raw, ok := options["generationConfig"]; ok {
		delete(options, "generationConfig")
		if err := json.Unmarshal(raw, &generation); err != nil {
			return nil, p.Wrap(model.CodeInvalidRequest, "the provider option generationConfig is not an object", err)
		}
	}
	var tools []json.RawMessage
	if raw, ok := options["tools"]; ok { // such as {"googleSearch":{}}
		delete(options, "tools")
		if err := json.Unmarshal(raw, &tools); err != nil {
			return nil, p.Wrap(model.CodeInvalidRequest, "the provider option tools is not a list", err)
		}
	}
	var list []wire.Member
	if len(generation) > 0 {
		list = append(list, wire.Member{Name: "generationConfig", Value: generation})
	}
	if len(req.Tools) > 0 {
		raw, err := wire.Marshal(map[string]any{"functionDeclarations": p.declarations(req.Tools)})
		if err != nil {
			return nil, p.Wrap(model.CodeInvalidRequest, "a tool's schema is not valid JSON", err)
		}
		tools = append(tools, raw)
		if mode := callingConfig(req.ToolChoice); mode != nil {
			list = append(list, wire.Member{Name: "toolConfig", Value: map[string]any{"functionCallingConfig": mode}})
		}
	}
	if len(tools) > 0 {
		list = append(list, wire.Member{Name: "tools", Value: tools})
	}
	if req.System != "" {
		list = append(list, wire.Member{Name: "systemInstruction", Value: map[string]any{"parts": []map[string]string{{"text": req.System}}}})
	}
	return list, nil
}

// generation returns the generationConfig of the request.
func generation(name string, req *model.Request) map[string]any {
	g := map[string]any{}
	if req.MaxTokens > 0 {
		g["maxOutputTokens"] = req.MaxTokens
	}
	if req.Temperature != nil {
		g["temperature"] = *req.Temperature
	}
	if len(req.OutputSchema) > 0 {
		g["responseMimeType"], g["responseJsonSchema"] = "application/json", req.OutputSchema
	}
	if t := thinking(name, req.Effort); t != nil {
		g["thinkingConfig"] = t
	}
	return g
}

// thinking returns the thinkingConfig for an effort: a budget of tokens for
// Gemini 2.5, a level for later ones, nothing for those that do not think. See
// https://ai.google.dev/gemini-api/docs/thinking.
func thinking(name string, e model.Effort) map[string]any {
	pro := strings.Contains(name, "pro")
	switch {
	case e == "" || strings.HasPrefix(name, "gemini-1") || strings.HasPrefix(name, "gemini-2.0") || !strings.HasPrefix(name, "gemini"):
		return nil
	case strings.HasPrefix(name, "gemini-2.5"):
		budget := map[model.Effort]int{model.EffortNone: 0, model.EffortLow: 1024, model.EffortMedium: 8192, model.EffortHigh: 24_576, model.EffortXHigh: 24_576}[e]
		switch {
		case pro && e == model.EffortNone:
			budget = 128 // the minimum
		case pro && e == model.EffortXHigh:
			budget = 32_768
		}
		return map[string]any{"thinkingBudget": budget, "includeThoughts": e != model.EffortNone}
	}
	level := map[model.Effort]string{model.EffortNone: "MINIMAL", model.EffortLow: "LOW", model.EffortMedium: "MEDIUM"}[e]
	switch {
	case level == "" || e == model.EffortMedium && strings.HasPrefix(name, "gemini-3-pro"):
		level = "HIGH"
	case pro && e == model.EffortNone:
		level = "LOW"
	}
	return map[string]any{"thinkingLevel": level, "includeThoughts": e != model.EffortNone}
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema"`
}

// declarations returns the tools. Deferred ones are included, as adding them
// later would change the cached prefix.
func (p *provider) declarations(defs []model.ToolDef) []declaration {
	list := make([]declaration, len(defs))
	for i, d := range defs {
		list[i] = declaration{d.Name, d.Description, p.schemas.Schema(d.Schema)}
	}
	return list
}

// callingConfig returns the API's form of a tool choice, nil for its default.
func callingConfig(c model.ToolChoice) map[string]any {
	switch c {
	case "", model.ToolChoiceAuto:
		return nil
	case model.ToolChoiceNone:
		return map[string]any{"mode": "NONE"}
	case model.ToolChoiceRequired:
		return map[string]any{"mode": "ANY"}
	}
	return map[string]any{"mode": "ANY", "allowedFunctionNames": []string{string(c)}}
}

// contents writes a conversation.
type contents struct {
	provider, model string
	b               []byte
	begun           bool // a content has been written
	parts           int  // of the current content
}

// begin begins a content.
func (c *contents) begin(role string) {
	if c.begun {
		c.b = append(c.b, ',')
	}
	c.begun, c.parts = true, 0
	c.b = wire.AppendField(append(c.b, '{'), "role", role)
	c.b = append(c.b, `,"parts":[`...)
}

// part begins a part. The caller writes its members and closes it.
func (c *contents) part() {
	if c.parts > 0 {
		c.b = append(c.b, ',')
	}
	c.parts++
	c.b = append(c.b, '{')
}

// end ends a content, which must not be empty.
func (c *contents) end() {
	if c.parts == 0 {
		c.text(" ")
	}
	c.b = append(c.b, "]}"...)
}

func (c *contents) messages(all []model.Message) {
	var calls []model.ToolCall // of the last message with calls
	for i := 0; i < len(all); i++ {
		m := all[i]
		switch m.Role {
		case model.RoleAssistant:
			calls = m.Parts.ToolCalls()
			if sendable(m.Parts, c.provider) {
				c.begin("model")
				c.assistant(m.Parts)
				c.end()
			}
		case model.RoleTool:
			parts := slices.Clone(m.Parts)
			for ; i+1 < len(all) && all[i+1].Role == model.RoleTool; i++ {
				parts = append(parts, all[i+1].Parts...)
			}
			c.begin("user")
			c.results(parts, calls)
			c.end()
		default:
			c.begin("user")
			for _, part := range m.Parts {
				c.content(part)
			}
			c.end()
		}
	}
}

// sendable reports whether a message of the model has anything to send.
func sendable(parts model.Parts, provider string) bool {
	return slices.ContainsFunc(parts, func(part model.Part) bool {
		switch part := part.(type) {
		case model.Reasoning:
			return false
		case model.Opaque:
			return part.Provider == provider
		case model.Text:
			return part.Text != ""
		}
		return true
	})
}

// signature is a thought signature: of the call that follows, or a separate part.
type signature struct {
	Signature string `json:"thoughtSignature"`
	Call      bool   `json:"call,omitempty"`
}

// foreignCall replaces the signature of a call that another provider's model
// made. See https://ai.google.dev/gemini-api/docs/thought-signatures.
const foreignCall = "skip_thought_signature_validator"

// assistant writes a message of the model. The first call needs a signature if
// the model checks for one.
func (c *contents) assistant(parts model.Parts) {
	pending, calls := "", 0
	for _, part := range parts {
		switch part := part.(type) {
		case model.Opaque:
			var s signature
			if part.Provider != c.provider || part.Model != c.model || json.Unmarshal(part.Raw, &s) != nil || s.Signature == "" {
				continue
			}
			if s.Call {
				pending = s.Signature
				continue
			}
			c.part()
			c.b = append(c.b, `"text":"",`...)
			c.b = append(wire.AppendField(c.b, "thoughtSignature", s.Signature), '}')
		case model.ToolCall:
			if calls++; pending == "" && calls == 1 && strings.HasPrefix(c.model, "gemini-") && thinksInLevels(c.model) {
				pending = foreignCall
			}
			c.call(part, pending)
			pending = ""
		case model.Reasoning:
		default:
			c.content(part)
		}
	}
}

// thinksInLevels reports whether a model is Gemini 3 or later, with levels of
// thinking instead of budgets.
func thinksInLevels(name string) bool {
	return !strings.HasPrefix(name, "gemini-1") && !strings.HasPrefix(name, "gemini-2")
}

func (c *contents) call(call model.ToolCall, signed string) {
	c.part()
	c.b = append(c.b, `"functionCall":{`...)
	c.b = wire.AppendField(c.b, "id", call.ID)
	c.b = wire.AppendField(append(c.b, ','), "name", wire.CallName(call.Name))
	c.b = append(c.b, `,"args":`...)
	c.b = append(append(c.b, wire.Object(call.Args)...), '}')
	if signed != "" {
		c.b = wire.AppendField(append(c.b, ','), "thoughtSignature", signed)
	}
	c.b = append(c.b, '}')
}

// results writes the results of a turn in the order of its calls, followed by
// their images if results cannot contain any. A result has the name of its call,
// even if another tool was run for it.
func (c *contents) results(parts model.Parts, calls []model.ToolCall) {
	position := func(p model.Part) int {
		r, _ := p.(model.ToolResult)
		if i := slices.IndexFunc(calls, func(c model.ToolCall) bool { return c.ID == r.CallID }); i >= 0 {
			return i
		}
		return len(calls)
	}
	slices.SortStableFunc(parts, func(a, b model.Part) int { return position(a) - position(b) })
	var images []model.Part
	for _, part := range parts {
		r, ok := part.(model.ToolResult)
		if !ok {
			continue
		}
		if i := position(r); i < len(calls) {
			r.Name = calls[i].Name
		}
		inside := c.result(r)
		if !inside {
			images = append(images, sendableImages(r.Content)...)
		}
	}
	for _, image := range images {
		c.content(image)
	}
}

// sendableImages returns the images with data.
func sendableImages(parts model.Parts) []model.Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p model.Part) bool {
		img, ok := p.(model.Image)
		return !ok || len(img.Data) == 0
	})
}

// result writes a result and reports whether it contains its images.
func (c *contents) result(r model.ToolResult) (images bool) {
	key := "output"
	if r.IsError {
		key = "error"
	}
	var texts []string
	for _, part := range r.Content {
		if t := plain(part); t != "" {
			texts = append(texts, t)
		}
	}
	c.part()
	c.b = append(c.b, `"functionResponse":{`...)
	c.b = wire.AppendField(c.b, "id", r.CallID)
	c.b = wire.AppendField(append(c.b, ','), "name", wire.CallName(r.Name))
	c.b = append(c.b, `,"response":{`...)
	c.b = append(wire.AppendField(c.b, key, strings.Join(texts, "\n")), '}')
	inside := sendableImages(r.Content)
	if images = thinksInLevels(c.model) && len(inside) > 0; images {
		sep := `,"parts":[`
		for _, part := range inside {
			c.b = append(append(c.b, sep...), '{')
			c.inline(part.(model.Image))
			c.b = append(c.b, '}')
			sep = ","
		}
		c.b = append(c.b, ']')
	}
	c.b = append(c.b, "}}"...)
	return images
}

// plain returns the text of a part, "" for an image with data.
func plain(part model.Part) string {
	if image, ok := part.(model.Image); ok && len(image.Data) > 0 {
		return ""
	}
	return wire.Text(part)
}

func (c *contents) text(text string) {
	c.part()
	c.b = append(wire.AppendField(c.b, "text", text), '}')
}

func (c *contents) inline(img model.Image) {
	c.b = append(c.b, `"inlineData":{`...)
	c.b = wire.AppendField(c.b, "mimeType", img.MediaType)
	c.b = append(c.b, `,"data":"`...)
	c.b = append(base64.StdEncoding.AppendEncode(c.b, img.Data), `"}`...)
}

// content writes a part that any role may have.
func (c *contents) content(part model.Part) {
	if img, ok := part.(model.Image); ok && len(img.Data) > 0 {
		c.part()
		c.inline(img)
		c.b = append(c.b, '}')
		return
	}
	if t := plain(part); t != "" {
		c.text(t)
	}
}
