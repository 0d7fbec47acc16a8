package anthropic

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// block is a block of content of any type.
type block struct {
	kind      string
	text      string // of a text or of thinking
	signature string
	image     *model.Image
	id, name  string          // of a call; a result has an id, too
	input     json.RawMessage // valid JSON
	content   []block         // of a result
	isError   bool
	cache     bool
	raw       json.RawMessage // the unchanged block, instead of all other fields
}

// ephemeral marks the end of a cached prefix.
const ephemeral = `,"cache_control":{"type":"ephemeral"}`

// append writes the block. encoding/json would take ten times as long, and
// conversations are long.
func (k *block) append(b []byte) []byte {
	if k.raw != nil {
		return append(b, k.raw...)
	}
	b = wire.AppendField(append(b, '{'), "type", k.kind)
	switch k.kind {
	case "text":
		b = wire.AppendField(append(b, ','), "text", k.text)
	case "thinking":
		b = wire.AppendField(append(b, ','), "thinking", k.text)
		b = wire.AppendField(append(b, ','), "signature", k.signature)
	case "image":
		b = append(b, `,"source":{"type":"base64",`...)
		b = wire.AppendField(b, "media_type", k.image.MediaType)
		b = append(b, `,"data":"`...)
		b = base64.StdEncoding.AppendEncode(b, k.image.Data)
		b = append(b, `"}`...)
	case "tool_use":
		b = wire.AppendField(append(b, ','), "id", k.id)
		b = wire.AppendField(append(b, ','), "name", k.name)
		b = append(append(b, `,"input":`...), k.input...)
	case "tool_reference":
		b = wire.AppendField(append(b, ','), "tool_name", k.name)
	case "tool_result":
		b = wire.AppendField(append(b, ','), "tool_use_id", k.id)
		if len(k.content) > 0 {
			b = appendBlocks(append(b, `,"content":`...), k.content)
		}
		if k.isError {
			b = append(b, `,"is_error":true`...)
		}
	}
	if k.cache {
		b = append(b, ephemeral...)
	}
	return append(b, '}')
}

func appendBlocks(b []byte, blocks []block) []byte {
	sep := byte('[')
	for i := range blocks {
		b = blocks[i].append(append(b, sep))
		sep = ','
	}
	return append(b, ']')
}

type message struct {
	role    string
	content []block
}

// conversation is the list of messages.
type conversation []message

func (c conversation) append(b []byte) []byte {
	b = append(b, '[')
	for i, m := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendField(append(b, '{'), "role", m.role)
		b = appendBlocks(append(b, `,"content":`...), m.content)
		b = append(b, '}')
	}
	return append(b, ']')
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Deferred    bool            `json:"defer_loading,omitempty"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

type cache struct {
	Type string `json:"type"`
}

// post encodes a request. The messages are last, so that the body of a longer
// conversation begins with that of a shorter one, except for cache marks.
func (p *provider) post(name string, req *model.Request) (wire.Post, error) {
	options, err := p.Options(req, "model", "stream", "system", "messages", "tools")
	if err != nil {
		return wire.Post{}, err
	}
	var betas []string
	if list, ok := options["betas"]; ok {
		if err := json.Unmarshal(list, &betas); err != nil {
			return wire.Post{}, p.Wrap(model.CodeInvalidRequest, "the provider option betas is not a list of names", err)
		}
		delete(options, "betas")
	}
	body, err := p.body(name, req, options)
	if err != nil {
		return wire.Post{}, p.Wrap(model.CodeInvalidRequest, "the request cannot be encoded", err)
	}
	post := wire.Post{URL: p.URL("messages"), Body: body}
	if len(betas) > 0 {
		post.Header = http.Header{"Anthropic-Beta": {strings.Join(betas, ",")}}
	}
	return post, nil
}

func (p *provider) body(name string, req *model.Request, options map[string]json.RawMessage) ([]byte, error) {
	members := append([]wire.Member{{Name: "model", Value: name}, {Name: "stream", Value: true}}, p.settings(name, req)...)
	if tools := p.tools(req.Tools); len(tools) > 0 {
		members = append(members, wire.Member{Name: "tools", Value: tools})
	}
	if req.System != "" {
		system := block{kind: "text", text: req.System, cache: true}
		members = append(members, wire.Member{Name: "system", Value: json.RawMessage(appendBlocks(nil, []block{system}))})
	}
	b, err := wire.AppendMembers(make([]byte, 0, wire.BodySize(req.Messages)), members, options)
	if err != nil {
		return nil, err
	}
	messages := p.messages(name, req.Messages)
	messages.checkReferences(req.Tools)
	b = messages.append(append(b, `,"messages":`...))
	return append(b, '}'), nil
}

// checkReferences replaces references to tools that no longer exist or are not
// deferred, which the API rejects, by text.
func (c conversation) checkReferences(defs []model.ToolDef) {
	var deferred map[string]bool
	for _, m := range c {
		for _, result := range m.content {
			for i, part := range result.content {
				if part.kind != "tool_reference" {
					continue
				}
				if deferred == nil {
					deferred = deferredNames(defs)
				}
				if !deferred[part.name] {
					result.content[i] = block{kind: "text", text: wire.Text(model.ToolReference{Name: part.name})}
				}
			}
		}
	}
}

func deferredNames(defs []model.ToolDef) map[string]bool {
	names := map[string]bool{}
	for _, d := range defs {
		if d.Deferred && !d.Late {
			names[d.Name] = true
		}
	}
	return names
}

// settings returns the members other than model, tools and conversation.
func (p *provider) settings(name string, req *model.Request) []wire.Member {
	limit := p.limit(name, req)
	members := []wire.Member{{Name: "max_tokens", Value: limit}}
	output := map[string]any{}
	thinks := false
	if t, effort := p.thinking(name, req, limit); t != nil {
		members = append(members, wire.Member{Name: "thinking", Value: t})
		thinks = true
		if effort != "" {
			output["effort"] = effort
		}
	}
	if len(req.OutputSchema) > 0 {
		output["format"] = map[string]any{"type": "json_schema", "schema": req.OutputSchema}
	}
	if len(output) > 0 {
		members = append(members, wire.Member{Name: "output_config", Value: output})
	}
	if req.Temperature != nil && !thinks { // they exclude each other
		members = append(members, wire.Member{Name: "temperature", Value: *req.Temperature})
	}
	if choice := toolChoice(req); choice != nil {
		members = append(members, wire.Member{Name: "tool_choice", Value: choice})
	}
	return members
}

// limit returns the maximum length of the answer, which the API requires.
func (p *provider) limit(name string, req *model.Request) int {
	known := 0
	if p.maxTokens != nil {
		known = p.maxTokens(name)
	}
	const fallback = 32_000 // since Claude 4; for older models, the limit must be known
	return cmp.Or(req.MaxTokens, known, fallback)
}

// toolChoice returns the API's form of the choice, nil for its default.
func toolChoice(req *model.Request) any {
	if len(req.Tools) == 0 {
		return nil
	}
	switch req.ToolChoice {
	case "", model.ToolChoiceAuto:
		return nil
	case model.ToolChoiceNone:
		return map[string]string{"type": "none"}
	case model.ToolChoiceRequired:
		return map[string]string{"type": "any"}
	}
	return map[string]string{"type": "tool", "name": string(req.ToolChoice)}
}

func forced(req *model.Request) bool {
	return len(req.Tools) > 0 && req.ToolChoice != "" && req.ToolChoice != model.ToolChoiceAuto && req.ToolChoice != model.ToolChoiceNone
}

// budgets are the tokens for thinking of models without adaptive thinking.
var budgets = map[model.Effort]int{model.EffortLow: 4_000, model.EffortMedium: 10_000, model.EffortHigh: 24_000, model.EffortXHigh: 48_000}

// thinking returns the API's form of an effort: nil for none. Adaptive thinking
// comes with an effort for the answer. Models since Claude 5 think by default, but
// show it only on request. A forced tool call excludes thinking.
func (p *provider) thinking(name string, req *model.Request, limit int) (form any, effort string) {
	if req.Effort == model.EffortNone || forced(req) || req.Effort == "" && !thinks().MatchString(name) {
		return nil, ""
	}
	if !budgeted().MatchString(name) {
		effort = string(req.Effort)
		if req.Effort == model.EffortXHigh && strings.Contains(name, "-4-6") {
			effort = "max" // its name in Claude 4.6
		}
		return map[string]string{"type": "adaptive", "display": "summarized"}, effort
	}
	const minBudget = 1024
	budget := min(budgets[req.Effort], limit-minBudget)
	if budget < minBudget || !p.canThink(name, req.Messages) {
		return nil, ""
	}
	return map[string]any{"type": "enabled", "budget_tokens": budget}, ""
}

// thinks matches the models that think by default.
var thinks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`claude-[a-z]+-(?:[5-9]|\d\d)(?:-|$)`) })

// budgeted matches the models whose thinking has a budget of tokens, those up to
// Claude 4.5. All others have adaptive thinking. See
// https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking.
var budgeted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`claude-(?:[123]\b|instant|[a-z]+-4(?:-[0-5])?(?:$|[-@]\d{6,}|-latest|-v\d))`)
})

// canThink reports whether the API accepts a budget for thinking: after a tool
// call, only if the model thought before it.
func (p *provider) canThink(name string, messages []model.Message) bool {
	for _, m := range slices.Backward(messages) {
		switch m.Role {
		case model.RoleUser:
			return true
		case model.RoleAssistant:
			sent := p.assistant(name, m.Parts)
			return len(m.Parts.ToolCalls()) == 0 || len(sent) > 0 && (sent[0].kind == "thinking" || sent[0].raw != nil)
		}
	}
	return true
}

// tools returns the tools. The last that is not deferred ends the cached
// prefix.
func (p *provider) tools(defs []model.ToolDef) []tool {
	defs = slices.DeleteFunc(slices.Clone(defs), func(d model.ToolDef) bool { return d.Late })
	tools := make([]tool, len(defs))
	last := -1
	for i, d := range defs {
		tools[i] = tool{Name: d.Name, Description: d.Description, InputSchema: p.schemas.Schema(d.Schema), Deferred: d.Deferred}
		if !d.Deferred {
			last = i
		}
	}
	if last >= 0 {
		tools[last].Cache = &cache{"ephemeral"}
	}
	return tools
}

// messages returns the conversation. The API requires alternating roles, and
// results before anything else in a turn.
func (p *provider) messages(name string, all []model.Message) conversation {
	out := make(conversation, 0, len(all))
	ids := ids{}
	for _, m := range all {
		role, content := "user", []block(nil)
		switch m.Role {
		case model.RoleAssistant:
			role, content = "assistant", p.assistant(name, m.Parts)
			ids.calls(content)
		case model.RoleTool:
			content = results(m.Parts)
			ids.results(content)
		default:
			content = blocks(m.Parts)
		}
		switch n := len(out); {
		case len(content) == 0:
		case n > 0 && out[n-1].role == role:
			out[n-1].content = append(out[n-1].content, content...)
		default:
			out = append(out, message{role, content})
		}
	}
	users := 0
	for _, m := range slices.Backward(out) {
		if m.role != "user" {
			continue
		}
		slices.SortStableFunc(m.content, resultsFirst)
		if users++; users <= 2 {
			m.content[len(m.content)-1].cache = true
		}
	}
	return out
}

func resultsFirst(a, b block) int {
	switch x, y := a.kind == "tool_result", b.kind == "tool_result"; {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// assistant returns the blocks of a message of the model. Reasoning is sent only
// to the model that wrote it: others reject it.
func (p *provider) assistant(name string, parts model.Parts) []block {
	var out []block
	own := p.Info().Name
	for _, part := range parts {
		switch part := part.(type) {
		case model.Reasoning:
			if signature, ok := strings.CutPrefix(part.Signature, author(own, name)); ok {
				out = append(out, block{kind: "thinking", text: part.Text, signature: signature})
			}
		case model.Opaque:
			if part.Provider == own && part.Model == name && json.Valid(part.Raw) {
				out = append(out, block{raw: part.Raw})
			}
		case model.ToolCall:
			out = append(out, block{kind: "tool_use", id: wireID(part.ID), name: wire.CallName(part.Name), input: wire.Object(part.Args)})
		default:
			out = appendBlock(out, part)
		}
	}
	return out
}

// ids makes the ids of calls unique in a conversation, as the API requires:
// other services count them from the start in each answer. It counts how often
// each was seen.
type ids map[string]int

func (n ids) calls(content []block) {
	for i := range content {
		if b := &content[i]; b.kind == "tool_use" {
			id := b.id
			n[id]++
			b.id = n.unique(id)
		}
	}
}

func (n ids) results(content []block) {
	for i := range content {
		content[i].id = n.unique(content[i].id)
	}
}

// unique returns the unique id of the latest call with the id.
func (n ids) unique(id string) string {
	if n[id] < 2 {
		return id
	}
	return wireID(id + "_" + strconv.Itoa(n[id]))
}

// wireID returns an id that the API accepts.
func wireID(id string) string { return wire.CallID(id, "toolu_", 64) }

func results(parts model.Parts) []block {
	var out []block
	for _, part := range parts {
		if r, ok := part.(model.ToolResult); ok {
			out = append(out, block{kind: "tool_result", id: wireID(r.CallID), content: blocks(r.Content), isError: r.IsError})
		}
	}
	return out
}

func blocks(parts model.Parts) []block {
	var out []block
	for _, part := range parts {
		out = appendBlock(out, part)
	}
	return out
}

// appendBlock adds a part that any role may have. The API rejects empty texts.
func appendBlock(out []block, part model.Part) []block {
	switch part := part.(type) {
	case model.Image:
		if len(part.Data) > 0 {
			return append(out, block{kind: "image", image: &part})
		}
	case model.ToolReference:
		return append(out, block{kind: "tool_reference", name: part.Name})
	}
	text := wire.Text(part)
	if strings.TrimSpace(text) == "" {
		return out
	}
	return append(out, block{kind: "text", text: text})
}
