package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

func (c chat) read(_ *Server, req *Request) (*Fault, error) {
	deployed := req.Model
	if err := json.Unmarshal(req.Body, req); err != nil {
		return nil, err
	}
	if deployed != "" {
		req.Model = deployed
	}
	if bad := req.checkChat(); bad != nil {
		return bad, nil
	}
	req.Parsed = req.parsedChat()
	return nil, nil
}

// parsedChat returns the parsed form of a valid request.
func (r *Request) parsedChat() Parsed {
	s := Parsed{
		Model: r.Model, Effort: r.ReasoningEffort, MaxTokens: max(r.MaxTokens, r.MaxCompletionTokens),
		Temperature: r.Temperature, ToolChoice: openAIChoice(r.ToolChoice),
	}
	for _, t := range r.Tools {
		s.Tools = append(s.Tools, model.ToolDef{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	var format struct {
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if json.Unmarshal(r.ResponseFormat, &format) == nil {
		s.OutputSchema = format.Schema.Schema
	}
	var system []string
	for i := range r.Messages {
		m := &r.Messages[i]
		switch m.Role {
		case "system", "developer":
			system = append(system, m.Text())
		case "user":
			s.add(model.RoleUser, m.content()...)
		case "assistant":
			s.add(model.RoleAssistant, m.content()...)
			for _, c := range m.ToolCalls {
				s.add(model.RoleAssistant, model.ToolCall{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
			}
		case "tool":
			s.add(model.RoleTool, model.ToolResult{CallID: m.ToolCallID, Content: m.content()})
		}
	}
	s.System = strings.Join(system, "\n")
	return s
}

// content returns the message's content as parts.
func (m *Message) content() model.Parts {
	var out model.Parts
	for _, p := range m.parts() {
		switch {
		case p.ImageURL != nil:
			out = append(out, dataImage(p.ImageURL.URL))
		case p.Text != "":
			out = append(out, model.Text{Text: p.Text})
		}
	}
	return out
}

// dataImage returns the image of a data URL. For other URLs it has no data.
func dataImage(u string) model.Image {
	kind, data, ok := strings.Cut(strings.TrimPrefix(u, "data:"), ";base64,")
	if !ok {
		return model.Image{}
	}
	img := model.Image{MediaType: kind}
	img.Data, _ = base64.StdEncoding.DecodeString(data) // the request has been checked
	return img
}

// openAIChoice returns a tool choice: a word, or a function's name in either of
// OpenAI's two forms.
func openAIChoice(raw json.RawMessage) model.ToolChoice {
	var word model.ToolChoice
	if json.Unmarshal(raw, &word) == nil {
		return word
	}
	var named struct {
		Name     model.ToolChoice
		Function struct{ Name model.ToolChoice }
	}
	_ = json.Unmarshal(raw, &named) // any other form means none
	return named.Name + named.Function.Name
}

// check returns why the service would reject the request.
func (r *Request) checkChat() *Fault {
	switch {
	case r.Model == "":
		return refuse("", "you must provide a model parameter")
	case len(r.Messages) == 0:
		return refuse("empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case r.StreamOptions != nil && !r.Stream:
		return refuse("", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.Temperature != nil && *r.Temperature != 1 && reasoningModel().MatchString(r.Model):
		return refuse("unsupported_value", "Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", *r.Temperature)
	case r.MaxTokens > 0 && reasoningModel().MatchString(r.Model):
		return refuse("unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case r.ToolChoice != nil && len(r.Tools) == 0:
		return refuse("", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	for i, t := range r.Tools {
		var params map[string]json.RawMessage
		if t.Type != "function" || !toolName().MatchString(t.Function.Name) || json.Unmarshal(t.Function.Parameters, &params) != nil {
			return refuse("invalid_function_parameters", "Invalid 'tools[%d]': a function with a name and an object as parameters was expected.", i)
		}
		if err := CheckSchema(ChatCompletions, r.Model, t.Function.Parameters); err != nil {
			return refuse("invalid_function_parameters", "Invalid schema for function '%s': %v", t.Function.Name, err)
		}
	}
	return r.checkMessages()
}

// checkMessages checks the roles and contents, and that every tool call is
// followed by its tool messages.
func (r *Request) checkMessages() *Fault {
	open := map[string]bool{}
	for i, m := range r.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return refuse("", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (messages[%d])", i)
		}
		switch m.Role {
		case "system", "developer", "user":
		case "assistant":
			if string(m.Content) == "null" && len(m.ToolCalls) == 0 {
				return refuse("", "Invalid value for 'content': expected a string, got null. (messages[%d])", i)
			}
			for _, c := range m.ToolCalls {
				if c.ID == "" || c.Type != "function" || len(c.ID) > 40 {
					return refuse("", "Invalid 'messages[%d].tool_calls': id (at most 40 characters) and type 'function' are required.", i)
				}
				open[c.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] {
				return refuse("", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (messages[%d])", i)
			}
			delete(open, m.ToolCallID)
		default:
			return refuse("invalid_value", "Invalid value: '%s'. (messages[%d].role)", m.Role, i)
		}
		if bad := m.checkContent(i); bad != nil {
			return bad
		}
	}
	if len(open) > 0 {
		return refuse("", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

func (m *Message) checkContent(i int) *Fault {
	var text *string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &text) == nil {
		return nil
	}
	var parts []contentPart
	if json.Unmarshal(m.Content, &parts) != nil {
		return refuse("invalid_type", "Invalid type for 'messages[%d].content'.", i)
	}
	for j, p := range parts {
		switch {
		case p.Type == "text":
		case p.Type == "image_url" && m.Role == "user" && p.ImageURL != nil && imageURL().MatchString(p.ImageURL.URL):
		default:
			return refuse("invalid_value", "Invalid value: '%s'. (messages[%d].content[%d])", p.Type, i, j)
		}
	}
	return nil
}
