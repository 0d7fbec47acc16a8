package modeltest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/model"
)

// messagesBody is the checked part of the body of a request.
type messagesBody struct {
	Model       string            `json:"model"`
	MaxTokens   *int              `json:"max_tokens"`
	System      json.RawMessage   `json:"system"`
	Messages    []messagesTurn    `json:"messages"`
	Tools       []messagesTool    `json:"tools"`
	Temperature *float64          `json:"temperature"`
	Thinking    *messagesThinking `json:"thinking"`
	ToolChoice  *struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	OutputConfig struct {
		Effort string `json:"effort"`
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

type messagesTurn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	blocks []messagesBlock
}

type messagesTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	Deferred     bool            `json:"defer_loading"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type messagesThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens"`
}

// messagesBlock is a block of content of any type.
type messagesBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolName     string          `json:"tool_name"`
	Content      json.RawMessage `json:"content"`
	IsError      bool            `json:"is_error"`
	CacheControl json.RawMessage `json:"cache_control"`
	Source       struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
}

// messagesMembers are the known members of a request.
const messagesMembers = " cache_control container context_management diagnostics inference_geo max_tokens mcp_servers messages metadata model output_config output_format" +
	" service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p "

func (messages) read(s *Server, req *Request) (*Fault, error) {
	var common struct {
		Model  string
		Stream bool
	}
	var body messagesBody
	if err := json.Unmarshal(req.Body, &common); err != nil {
		return nil, err
	}
	req.Model, req.Stream = common.Model, common.Stream
	if req.Header.Get("Anthropic-Version") == "" {
		return refuse("", "anthropic-version: header is required"), nil
	}
	if name := unknownMember(req.Body, messagesMembers); name != "" {
		return refuse("", "%s: Extra inputs are not permitted", name), nil
	}
	if err := json.Unmarshal(req.Body, &body); err != nil {
		return refuse("", "Input should be valid: %v", err), nil
	}
	for _, check := range []func() *Fault{body.check, body.checkTools, body.checkThinking, body.parse, body.checkCache, body.checkCalls} {
		if bad := check(); bad != nil {
			return bad, nil
		}
	}
	for i := range body.Messages {
		if bad := body.checkBlocks(s, i); bad != nil {
			return bad, nil
		}
	}
	req.Parsed = body.parsed()
	return nil, nil
}

// check returns why the service would reject the members other than tools and
// content. The messages are those of the service, as reported by its users.
func (b *messagesBody) check() *Fault {
	switch {
	case b.Model == "":
		return refuse("", "model: Field required")
	case b.MaxTokens == nil:
		return refuse("", "max_tokens: Field required")
	case *b.MaxTokens < 1:
		return refuse("", "max_tokens: must be greater than or equal to 1")
	case len(b.Messages) == 0:
		return refuse("", "messages: at least one message is required")
	case b.Messages[0].Role != "user":
		return refuse("", "messages: first message must use the \"user\" role")
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 1):
		return refuse("", "temperature: range: 0..1")
	}
	for i, m := range b.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return refuse("", "messages: Unexpected role %q. The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role. (messages.%d)", m.Role, i)
		}
	}
	return nil
}

func (b *messagesBody) checkTools() *Fault {
	names := map[string]bool{}
	for i, t := range b.Tools {
		var schema struct{ Type string }
		switch {
		case !messagesName().MatchString(t.Name):
			return refuse("", "tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case names[t.Name]:
			return refuse("", "tools: Tool names must be unique.")
		case json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object":
			return refuse("", "tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		if err := CheckSchema(Messages, b.Model, t.InputSchema); err != nil {
			return refuse("", "tools.%d.custom.input_schema: %v", i, err)
		}
		if t.Deferred && len(t.CacheControl) > 0 {
			return refuse("", "tools.%d: Tools with defer_loading=true cannot have cache_control set.", i)
		}
		names[t.Name] = true
	}
	if len(b.Tools) > 0 && !slices.ContainsFunc(b.Tools, func(t messagesTool) bool { return !t.Deferred }) {
		return refuse("", "At least one tool must have defer_loading=false.")
	}
	switch c := b.ToolChoice; {
	case c == nil:
	case len(b.Tools) == 0:
		return refuse("", "tool_choice: may only be specified while providing tools")
	case c.Type == "tool" && !names[c.Name]:
		return refuse("", "Tool '%s' not found in provided tools", c.Name)
	case !slices.Contains([]string{"auto", "any", "tool", "none"}, c.Type):
		return refuse("", "tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'", c.Type)
	}
	return nil
}

var (
	messagesName  = lazy.Regexp(`^[a-zA-Z0-9_-]{1,128}$`)
	messagesID    = lazy.Regexp(`^[a-zA-Z0-9_-]+$`)
	messagesImage = lazy.Regexp(`^image/(jpeg|png|gif|webp)$`)
	// adaptive are the models with adaptive thinking. See
	// https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking.
	adaptive = lazy.Regexp(`claude-[a-z]+-(4-[6-9]|[5-9])`)
)

// checkThinking checks the rules of
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking.
func (b *messagesBody) checkThinking() *Fault {
	t := b.Thinking
	if t == nil || t.Type == "disabled" {
		return nil
	}
	switch {
	case t.Type == "adaptive" && !adaptive().MatchString(b.Model):
		return refuse("", "adaptive thinking is not supported on this model")
	case t.Type != "adaptive" && t.Type != "enabled":
		return refuse("", "thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'disabled', 'enabled', 'adaptive'", t.Type)
	case t.Type == "enabled" && t.Budget < 1024:
		return refuse("", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case t.Type == "enabled" && t.Budget >= *b.MaxTokens:
		return refuse("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
	case b.Temperature != nil && *b.Temperature != 1:
		return refuse("", "`temperature` may only be set to 1 when thinking is enabled.")
	case b.ToolChoice != nil && (b.ToolChoice.Type == "any" || b.ToolChoice.Type == "tool"):
		return refuse("", "Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}

// parse reads the contents of the messages, and joins messages of one role as
// the service does.
func (b *messagesBody) parse() *Fault {
	var out []messagesTurn
	for i, m := range b.Messages {
		var plain string
		if json.Unmarshal(m.Content, &plain) == nil {
			m.blocks = []messagesBlock{{Type: "text", Text: plain}}
		} else if json.Unmarshal(m.Content, &m.blocks) != nil {
			return refuse("", "messages.%d.content: Input should be a valid list", i)
		}
		if len(m.blocks) == 0 {
			return refuse("", "messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].blocks = append(out[n-1].blocks, m.blocks...)
			continue
		}
		out = append(out, m)
	}
	b.Messages = out
	return nil
}

// checkCache counts the cache marks: see
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
func (b *messagesBody) checkCache() *Fault {
	n := 0
	count := func(raw json.RawMessage) {
		if len(raw) > 0 && string(raw) != "null" {
			n++
		}
	}
	for _, t := range b.Tools {
		count(t.CacheControl)
	}
	var system []messagesBlock
	_ = json.Unmarshal(b.System, &system) // or it is a string, without a mark
	for _, k := range system {
		count(k.CacheControl)
	}
	for _, m := range b.Messages {
		for _, k := range m.blocks {
			count(k.CacheControl)
		}
	}
	if n > 4 {
		return refuse("", "A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}

// checkCalls checks that the message after calls begins with their results, and
// that there are no other results.
func (b *messagesBody) checkCalls() *Fault {
	seen := map[string]bool{}
	var open []string
	for i, m := range b.Messages {
		for j, k := range m.blocks {
			at := slices.Index(open, k.ToolUseID)
			switch {
			case k.Type == "tool_result" && at < 0:
				return refuse("", "messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, k.ToolUseID)
			case k.Type == "tool_result":
				open = slices.Delete(open, at, at+1)
			case len(open) > 0 && m.Role == "user":
				return unanswered(i-1, open)
			case k.Type == "tool_use" && seen[k.ID]:
				return refuse("", "messages.%d.content.%d: `tool_use` ids must be unique", i, j)
			case k.Type == "tool_use":
				seen[k.ID] = true
				open = append(open, k.ID)
			}
		}
		if len(open) > 0 && m.Role == "user" {
			return unanswered(i-1, open)
		}
	}
	if len(open) > 0 {
		return unanswered(len(b.Messages)-1, open)
	}
	return nil
}

func unanswered(i int, open []string) *Fault {
	return refuse("", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, strings.Join(open, ", "))
}

// checkBlocks checks each block of message i.
func (b *messagesBody) checkBlocks(s *Server, i int) *Fault {
	m := &b.Messages[i]
	for j := range m.blocks {
		at := fmt.Sprintf("messages.%d.content.%d", i, j)
		if bad := m.blocks[j].check(s, at, m.Role); bad != nil {
			return bad
		}
		if bad := b.checkReferences(&m.blocks[j]); bad != nil {
			return bad
		}
	}
	return b.checkFirst(i)
}

// checkReferences checks that the references of a result are to deferred tools. See
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool.
func (b *messagesBody) checkReferences(result *messagesBlock) *Fault {
	parts, _ := result.inner() // it has been checked
	for _, part := range parts {
		if part.Type == "tool_reference" && !slices.ContainsFunc(b.Tools, func(t messagesTool) bool { return t.Name == part.ToolName && t.Deferred }) {
			return refuse("", "Tool reference '%s' not found in available tools", part.ToolName)
		}
	}
	return nil
}

// checkFirst checks that thinking with a budget is not enabled after calls that
// were made without thinking.
func (b *messagesBody) checkFirst(i int) *Fault {
	m := &b.Messages[i]
	last := i >= len(b.Messages)-2 && m.Role == "assistant"
	if !last || b.Thinking == nil || b.Thinking.Type != "enabled" || !slices.ContainsFunc(m.blocks, func(k messagesBlock) bool { return k.Type == "tool_use" }) {
		return nil
	}
	if first := m.blocks[0].Type; first != "thinking" && first != "redacted_thinking" {
		return refuse("", "messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", i, first)
	}
	return nil
}

// check returns why the service would reject a block.
func (k *messagesBlock) check(s *Server, at, role string) *Fault {
	var input map[string]json.RawMessage
	text, issued := s.signed(k.Signature + k.Data)
	byModel := k.Type == "tool_use" || k.Type == "thinking" || k.Type == "redacted_thinking"
	byUser := k.Type == "tool_result" || k.Type == "image"
	switch {
	case byModel && role != "assistant", byUser && role != "user":
		return refuse("", "%s: `%s` blocks can not be in `%s` messages", at, k.Type, role)
	case k.Type == "text" && k.Text == "":
		return refuse("", "messages: text content blocks must be non-empty")
	case k.Type == "text" && strings.TrimSpace(k.Text) == "":
		return refuse("", "messages: text content blocks must contain non-whitespace text")
	case k.Type == "tool_use" && (!messagesID().MatchString(k.ID) || !messagesName().MatchString(k.Name)):
		return refuse("", "%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
	case k.Type == "tool_use" && json.Unmarshal(k.Input, &input) != nil:
		return refuse("", "%s.tool_use.input: Input should be a valid dictionary", at)
	case k.Type == "thinking" && (!issued || k.Signature == ""):
		return refuse("", "%s: Invalid `signature` in `thinking` block", at)
	case k.Type == "thinking" && text != k.Thinking:
		return refuse("", "%s: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.", at)
	case k.Type == "redacted_thinking" && (!issued || k.Data == ""):
		return refuse("", "%s: Invalid `data` in `redacted_thinking` block", at)
	case k.Type == "image" && k.Source.Type == "base64" && !messagesImage().MatchString(k.Source.MediaType):
		return refuse("", "%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", at)
	case k.Type == "tool_result":
		return k.checkResult(s, at)
	case !slices.Contains([]string{"text", "image", "thinking", "redacted_thinking", "tool_use", "document", "tool_reference"}, k.Type):
		return refuse("", "%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, k.Type)
	}
	return nil
}

func (k *messagesBlock) checkResult(s *Server, at string) *Fault {
	blocks, ok := k.inner()
	if !ok {
		return refuse("", "%s.tool_result.content: Input should be a valid list", at)
	}
	for j := range blocks {
		if kind := blocks[j].Type; kind == "tool_result" || kind == "tool_use" {
			return refuse("", "%s.tool_result.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags", at, j, kind)
		}
		if bad := blocks[j].check(s, fmt.Sprintf("%s.tool_result.content.%d", at, j), "user"); bad != nil {
			return bad
		}
	}
	return nil
}

// inner returns the content of a result.
func (k *messagesBlock) inner() (blocks []messagesBlock, ok bool) {
	var plain string
	switch {
	case len(k.Content) == 0:
		return nil, true
	case json.Unmarshal(k.Content, &plain) == nil && plain != "":
		return []messagesBlock{{Type: "text", Text: plain}}, true
	case bytes.HasPrefix(k.Content, []byte(`"`)):
		return nil, true
	}
	return blocks, json.Unmarshal(k.Content, &blocks) == nil
}

// parsed returns the parsed form of a valid request.
func (b *messagesBody) parsed() Parsed {
	s := Parsed{
		Model: b.Model, MaxTokens: *b.MaxTokens, Temperature: b.Temperature, OutputSchema: b.OutputConfig.Format.Schema,
		Effort: b.OutputConfig.Effort, System: messagesSystem(b.System),
	}
	if t := b.Thinking; t != nil && t.Type == "enabled" {
		s.Effort = fmt.Sprint(t.Budget)
	}
	if c := b.ToolChoice; c != nil {
		switch c.Type {
		case "any":
			s.ToolChoice = model.ToolChoiceRequired
		case "tool":
			s.ToolChoice = model.ToolChoice(c.Name)
		default:
			s.ToolChoice = model.ToolChoice(c.Type)
		}
	}
	for _, t := range b.Tools {
		s.Tools = append(s.Tools, model.ToolDef{Name: t.Name, Description: t.Description, Schema: t.InputSchema, Deferred: t.Deferred})
	}
	for _, m := range b.Messages {
		role := model.RoleUser
		if m.Role == "assistant" {
			role = model.RoleAssistant
		}
		for i := range m.blocks {
			part := m.blocks[i].part()
			if _, ok := part.(model.ToolResult); ok {
				s.add(model.RoleTool, part)
				continue
			}
			s.add(role, part)
		}
	}
	return s
}

func messagesSystem(raw json.RawMessage) string {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return plain
	}
	var blocks []messagesBlock
	_ = json.Unmarshal(raw, &blocks) // any other form has none
	var texts []string
	for _, k := range blocks {
		texts = append(texts, k.Text)
	}
	return strings.Join(texts, "\n")
}

// part returns the block as a part.
func (k *messagesBlock) part() model.Part {
	switch k.Type {
	case "thinking":
		return model.Reasoning{Text: k.Thinking, Signature: k.Signature}
	case "redacted_thinking":
		return opaque(k.Data)
	case "tool_use":
		return model.ToolCall{ID: k.ID, Name: k.Name, Args: string(k.Input)}
	case "tool_reference":
		return model.ToolReference{Name: k.ToolName}
	case "image":
		img := model.Image{MediaType: k.Source.MediaType}
		img.Data, _ = base64.StdEncoding.DecodeString(k.Source.Data) // invalid data shows as no image
		return img
	case "tool_result":
		r := model.ToolResult{CallID: k.ToolUseID, IsError: k.IsError}
		blocks, _ := k.inner() // it has been checked
		for i := range blocks {
			r.Content = append(r.Content, blocks[i].part())
		}
		return r
	}
	return model.Text{Text: k.Text}
}
