package modeltest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/model"
)

// responsesBody is the checked part of the body of a request.
type responsesBody struct {
	Model           string             `json:"model"`
	Input           json.RawMessage    `json:"input"`
	Instructions    string             `json:"instructions"`
	Tools           []responsesTool    `json:"tools"`
	ToolChoice      json.RawMessage    `json:"tool_choice"`
	Temperature     *float64           `json:"temperature"`
	MaxOutputTokens *int               `json:"max_output_tokens"`
	Reasoning       *responsesThinking `json:"reasoning"`
	Include         []string           `json:"include"`
	Store           *bool              `json:"store"`
	Text            struct {
		Format struct {
			Type   string          `json:"type"`
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Execution   string          `json:"execution"`
	Deferred    bool            `json:"defer_loading"`
}

type responsesThinking struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary"`
}

// responsesItem is an item of the input of any type.
type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	Execution string          `json:"execution"`
	Tools     []responsesTool `json:"tools"`
}

// UnmarshalJSON reads an item. The arguments of a call are a string, those of a
// search an object.
func (it *responsesItem) UnmarshalJSON(data []byte) error {
	type plain responsesItem
	head := struct {
		*plain
		Arguments json.RawMessage `json:"arguments"`
	}{plain: (*plain)(it)}
	if err := json.Unmarshal(data, &head); err != nil || len(head.Arguments) == 0 {
		return err
	}
	if head.Type == "tool_search_call" {
		args := string(head.Arguments)
		it.Arguments = &args
		return nil
	}
	return json.Unmarshal(head.Arguments, &it.Arguments)
}

// responsesMembers are the known members of a request.
const responsesMembers = " background context_management conversation include input instructions max_output_tokens max_tool_calls metadata model moderation" +
	" parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store" +
	" stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user "

// unknownMember returns a member of a JSON object that is not known. Known names
// are surrounded by spaces.
func unknownMember(body []byte, known string) string {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(body, &all) // any other body fails elsewhere
	names := []string{}
	for name := range all {
		if !strings.Contains(known, " "+name+" ") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

func (responses) read(s *Server, req *Request) (*Fault, error) {
	var common struct {
		Model  string
		Stream bool
	}
	var body responsesBody
	if err := json.Unmarshal(req.Body, &common); err != nil {
		return nil, err
	}
	req.Model, req.Stream = common.Model, common.Stream
	if name := unknownMember(req.Body, responsesMembers); name != "" {
		return refuse("unknown_parameter", "Unknown parameter: '%s'.", name), nil
	}
	if err := json.Unmarshal(req.Body, &body); err != nil {
		return refuse("invalid_type", "Invalid type: %v.", err), nil
	}
	req.encrypted = slices.Contains(body.Include, "reasoning.encrypted_content")
	if bad := body.check(); bad != nil {
		return bad, nil
	}
	var input string
	var items []responsesItem
	if json.Unmarshal(body.Input, &input) == nil {
		items = []responsesItem{{Type: "message", Role: "user", Content: body.Input}}
	} else if err := json.Unmarshal(body.Input, &items); err != nil {
		return refuse("invalid_type", "Invalid type for 'input': expected one of a list of items or a string."), nil
	}
	in := responsesInput{server: s, parsed: body.parsed(), store: body.Store == nil || *body.Store, open: map[string]bool{}, seen: map[string]bool{}}
	for i := range items {
		if bad := in.take(i, items); bad != nil {
			return bad, nil
		}
	}
	for id := range in.open {
		return refuse("", "No tool output found for function call %s.", id), nil
	}
	req.Parsed = in.parsed
	req.searches = slices.ContainsFunc(body.Tools, func(t responsesTool) bool { return t.Type == "tool_search" })
	return nil, nil
}

// check returns why the service would reject the members other than the input.
// The messages are those of the service, as reported by its users.
func (b *responsesBody) check() *Fault {
	reasons := reasoningModel().MatchString(b.Model)
	switch {
	case b.Model == "":
		return refuse("missing_required_parameter", "Missing required parameter: 'model'.")
	case len(b.Input) == 0:
		return refuse("missing_required_parameter", "Missing required parameter: 'input'.")
	case b.Temperature != nil && reasons:
		return refuse("unsupported_parameter", "Unsupported parameter: 'temperature' is not supported with this model.")
	case b.Reasoning != nil && b.Reasoning.Effort != "" && !reasons:
		return refuse("unsupported_parameter", "Unsupported parameter: 'reasoning.effort' is not supported with this model.")
	case b.Reasoning != nil && !strings.Contains(" none minimal low medium high xhigh  ", " "+b.Reasoning.Effort+" "):
		return refuse("invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', and 'xhigh'.", b.Reasoning.Effort)
	case slices.Contains(b.Include, "reasoning.encrypted_content") && !reasons:
		return refuse("", "Encrypted content is not supported with this model.")
	case b.MaxOutputTokens != nil && *b.MaxOutputTokens < 16:
		return refuse("integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *b.MaxOutputTokens)
	case len(b.Tools) == 0 && len(b.ToolChoice) > 0 && openAIChoice(b.ToolChoice) != model.ToolChoiceNone && openAIChoice(b.ToolChoice) != model.ToolChoiceAuto:
		return refuse("", "Tool choice %s must be specified with 'tools' parameter.", b.ToolChoice)
	}
	searches := slices.ContainsFunc(b.Tools, func(t responsesTool) bool { return t.Type == "tool_search" })
	for i, t := range b.Tools {
		if t.Type == "tool_search" {
			if bad := t.checkSearch(b.Model); bad != nil {
				return bad
			}
			continue
		}
		if t.Deferred && !searches {
			return refuse("", "Deferred tools require tool_search.")
		}
		var params map[string]json.RawMessage
		switch {
		case t.Type != "function":
			return refuse("invalid_value", "Invalid value: '%s'. (tools[%d].type)", t.Type, i)
		case !toolName().MatchString(t.Name):
			return refuse("invalid_value", "Invalid 'tools[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		case json.Unmarshal(t.Parameters, &params) != nil || string(params["type"]) != `"object"`:
			return refuse("invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", t.Name)
		}
		if err := CheckSchema(Responses, b.Model, t.Parameters); err != nil {
			return refuse("invalid_function_parameters", "Invalid schema for function '%s': %v", t.Name, err)
		}
	}
	if f := b.Text.Format; f.Type == "json_schema" && (!toolName().MatchString(f.Name) || len(f.Schema) == 0) {
		return refuse("missing_required_parameter", "Missing required parameter: 'text.format.name' or 'text.format.schema'.")
	}
	return nil
}

// checkSearch checks a tool search by the client. See
// https://developers.openai.com/api/docs/guides/tools-tool-search.
func (t *responsesTool) checkSearch(name string) *Fault {
	switch {
	case !searchingModel().MatchString(name):
		return refuse("unsupported_parameter", "Tool 'tool_search' is not supported with %s.", name)
	case t.Execution != "client" || t.Description == "" || len(t.Parameters) == 0:
		return refuse("", "Tool 'tool_search' needs a description and parameters if its execution is 'client'.")
	}
	return nil
}

var searchingModel = lazy.Regexp(`^gpt-(5\.([4-9]|\d\d)|[6-9])`)

// parsed returns the parsed request without its input.
func (b *responsesBody) parsed() Parsed {
	s := Parsed{Model: b.Model, System: b.Instructions, Temperature: b.Temperature, ToolChoice: openAIChoice(b.ToolChoice), OutputSchema: b.Text.Format.Schema}
	if b.MaxOutputTokens != nil {
		s.MaxTokens = *b.MaxOutputTokens
	}
	if b.Reasoning != nil {
		s.Effort = b.Reasoning.Effort
	}
	for _, t := range b.Tools {
		if t.Type == "tool_search" {
			t.Name = model.ToolSearch
		}
		s.Tools = append(s.Tools, model.ToolDef{Name: t.Name, Description: t.Description, Schema: t.Parameters, Deferred: t.Deferred})
	}
	return s
}

// responsesInput reads the items of an input.
type responsesInput struct {
	server *Server
	parsed Parsed
	store  bool
	open   map[string]bool // calls that wait for their result
	seen   map[string]bool // all calls
}

// take adds item i.
func (in *responsesInput) take(i int, items []responsesItem) *Fault {
	item := &items[i]
	switch item.Type {
	case "", "message":
		return in.message(i, item)
	case "function_call":
		if item.CallID == "" || len(item.CallID) > 64 || item.Name == "" || item.Arguments == nil {
			return refuse("string_above_max_length", "Invalid 'input[%d]': a call_id of at most 64 characters, a name and arguments are required.", i)
		}
		in.open[item.CallID], in.seen[item.CallID] = true, true
		in.parsed.add(model.RoleAssistant, model.ToolCall{ID: item.CallID, Name: item.Name, Args: *item.Arguments})
	case "function_call_output":
		if !in.seen[item.CallID] {
			return refuse("", "No tool call found for function call output with call_id %s.", item.CallID)
		}
		content, bad := responsesContent(i, "output", item.Output, "input_text", "input_image", "input_file")
		if bad != nil {
			return bad
		}
		delete(in.open, item.CallID)
		in.parsed.add(model.RoleTool, model.ToolResult{CallID: item.CallID, Content: content})
	case "tool_search_call":
		if item.CallID == "" || item.Execution != "client" || item.Arguments == nil {
			return refuse("", "Invalid 'input[%d]': a search has a call_id, arguments and the execution 'client'.", i)
		}
		in.open[item.CallID], in.seen[item.CallID] = true, true
		in.parsed.add(model.RoleAssistant, model.ToolCall{ID: item.CallID, Name: model.ToolSearch, Args: *item.Arguments})
	case "tool_search_output":
		return in.found(item)
	case "reasoning":
		return in.reasoning(i, items)
	default:
		return refuse("invalid_value", "Invalid value: '%s'. (input[%d].type)", item.Type, i)
	}
	return nil
}

// found adds the results of a search.
func (in *responsesInput) found(item *responsesItem) *Fault {
	if !in.seen[item.CallID] || item.Execution != "client" {
		return refuse("", "No tool search call found for tool search output with call_id %s.", item.CallID)
	}
	delete(in.open, item.CallID)
	r := model.ToolResult{CallID: item.CallID}
	for _, t := range item.Tools {
		if t.Type != "function" || !t.Deferred || len(t.Parameters) == 0 {
			return refuse("", "Tool search outputs hold deferred tools with their definitions.")
		}
		r.Content = append(r.Content, model.ToolReference{Name: t.Name})
	}
	in.parsed.add(model.RoleTool, r)
	return nil
}

func (in *responsesInput) message(i int, item *responsesItem) *Fault {
	kinds, role := []string{"input_text", "input_image", "input_file"}, model.RoleUser
	switch item.Role {
	case "user", "system", "developer":
	case "assistant":
		kinds, role = []string{"output_text", "refusal"}, model.RoleAssistant
	default:
		return refuse("invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'. (input[%d].role)", item.Role, i)
	}
	content, bad := responsesContent(i, "content", item.Content, kinds...)
	switch {
	case bad != nil:
		return bad
	case item.Role == "system" || item.Role == "developer":
		in.parsed.System = strings.TrimPrefix(in.parsed.System+"\n"+content.Text(), "\n")
	default:
		in.parsed.add(role, content...)
	}
	return nil
}

// reasoning checks an item that the service sent. It must come back unchanged,
// followed by another item.
func (in *responsesInput) reasoning(i int, items []responsesItem) *Fault {
	item := &items[i]
	if len(item.Summary) == 0 {
		return refuse("missing_required_parameter", "Missing required parameter: 'input[%d].summary'.", i)
	}
	if item.Encrypted == "" && !in.store {
		return refuse("", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", item.ID)
	}
	if id, ok := in.server.signed(item.Encrypted); !ok || id != item.ID {
		return refuse("invalid_encrypted_content", "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", item.ID)
	}
	if i+1 == len(items) || items[i+1].Type != "function_call" && items[i+1].Type != "tool_search_call" && items[i+1].Type != "reasoning" && items[i+1].Role != "assistant" {
		return refuse("", "Item '%s' of type 'reasoning' was provided without its required following item.", item.ID)
	}
	in.parsed.add(model.RoleAssistant, opaque(item.Encrypted))
	return nil
}

// responsesContent reads a string or a list of parts of the given types.
func responsesContent(i int, member string, raw json.RawMessage, kinds ...string) (model.Parts, *Fault) {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return model.TextParts(plain), nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Refusal  string `json:"refusal"`
		ImageURL string `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil, refuse("invalid_type", "Invalid type for 'input[%d].%s'.", i, member)
	}
	var out model.Parts
	for j, p := range parts {
		switch {
		case !slices.Contains(kinds, p.Type):
			return nil, refuse("invalid_value", "Invalid value: '%s'. Supported values are: '%s'. (input[%d].%s[%d])", p.Type, strings.Join(kinds, "', '"), i, member, j)
		case p.Type == "input_image" && !imageURL().MatchString(p.ImageURL):
			return nil, refuse("invalid_image_url", "Invalid 'input[%d].%s[%d].image_url'. Expected a valid URL.", i, member, j)
		case p.Type == "input_image":
			out = append(out, dataImage(p.ImageURL))
		default:
			out = append(out, model.Text{Text: p.Text + p.Refusal})
		}
	}
	return out, nil
}
