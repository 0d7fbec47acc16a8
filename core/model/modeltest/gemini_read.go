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

// geminiBody is the body of a request, with all known members: the service rejects
// others.
type geminiBody struct {
	Contents          []geminiContent  `json:"contents"`
	SystemInstruction *geminiContent   `json:"systemInstruction"`
	Tools             []geminiTool     `json:"tools"`
	ToolConfig        geminiToolConfig `json:"toolConfig"`
	GenerationConfig  geminiConfig     `json:"generationConfig"`
	SafetySettings    json.RawMessage  `json:"safetySettings"`
	CachedContent     string           `json:"cachedContent"`
	Labels            json.RawMessage  `json:"labels"`
	ServiceTier       string           `json:"serviceTier"`
	Store             *bool            `json:"store"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text             string          `json:"text"`
	Thought          bool            `json:"thought"`
	ThoughtSignature string          `json:"thoughtSignature"`
	InlineData       *geminiData     `json:"inlineData"`
	FunctionCall     *geminiCall     `json:"functionCall"`
	FunctionResponse *geminiResponse `json:"functionResponse"`
	FileData         json.RawMessage `json:"fileData"`
	MediaResolution  json.RawMessage `json:"mediaResolution"`
	VideoMetadata    json.RawMessage `json:"videoMetadata"`
}

type geminiData struct {
	MimeType    string `json:"mimeType"`
	Data        string `json:"data"`
	DisplayName string `json:"displayName"`
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiResponse struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Response     json.RawMessage `json:"response"`
	Parts        []geminiPart    `json:"parts"`
	WillContinue bool            `json:"willContinue"`
	Scheduling   string          `json:"scheduling"`
}

type geminiTool struct {
	FunctionDeclarations []struct {
		Name                 string          `json:"name"`
		Description          string          `json:"description"`
		Parameters           json.RawMessage `json:"parameters"`
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		Response             json.RawMessage `json:"response"`
		ResponseJSONSchema   json.RawMessage `json:"responseJsonSchema"`
		Behavior             string          `json:"behavior"`
	} `json:"functionDeclarations"`
	GoogleSearch  json.RawMessage `json:"googleSearch"`
	CodeExecution json.RawMessage `json:"codeExecution"`
	URLContext    json.RawMessage `json:"urlContext"`
}

type geminiToolConfig struct {
	FunctionCallingConfig struct {
		Mode                        string   `json:"mode"`
		AllowedFunctionNames        []string `json:"allowedFunctionNames"`
		StreamFunctionCallArguments bool     `json:"streamFunctionCallArguments"`
	} `json:"functionCallingConfig"`
	RetrievalConfig json.RawMessage `json:"retrievalConfig"`
}

type geminiConfig struct {
	StopSequences      []string        `json:"stopSequences"`
	ResponseMimeType   string          `json:"responseMimeType"`
	ResponseSchema     json.RawMessage `json:"responseSchema"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
	ResponseModalities []string        `json:"responseModalities"`
	CandidateCount     int             `json:"candidateCount"`
	MaxOutputTokens    int             `json:"maxOutputTokens"`
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"topP"`
	TopK               *float64        `json:"topK"`
	Seed               *int            `json:"seed"`
	PresencePenalty    *float64        `json:"presencePenalty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty"`
	ResponseLogprobs   bool            `json:"responseLogprobs"`
	Logprobs           *int            `json:"logprobs"`
	MediaResolution    string          `json:"mediaResolution"`
	SpeechConfig       json.RawMessage `json:"speechConfig"`
	ImageConfig        json.RawMessage `json:"imageConfig"`
	ThinkingConfig     *struct {
		IncludeThoughts bool   `json:"includeThoughts"`
		ThinkingBudget  *int   `json:"thinkingBudget"`
		ThinkingLevel   string `json:"thinkingLevel"`
	} `json:"thinkingConfig"`
}

func (g gemini) read(s *Server, req *Request) (*Fault, error) {
	if !json.Valid(req.Body) {
		return nil, json.Unmarshal(req.Body, &struct{}{})
	}
	if req.Stream && req.URL.Query().Get("alt") != "sse" {
		return refuse("", "This fake server streams with ?alt=sse only."), nil
	}
	var body geminiBody
	dec := json.NewDecoder(bytes.NewReader(req.Body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil {
		return refuse("", "Invalid JSON payload received. %v: Cannot find field.", err), nil
	}
	for _, check := range []func() *Fault{
		func() *Fault { return body.checkTools(req.Model) },
		func() *Fault { return body.GenerationConfig.check(req.Model) },
		body.checkTurns,
		func() *Fault { return body.checkSignatures(s, req.Model) },
		func() *Fault { return body.checkImages(req.Model) },
	} {
		if bad := check(); bad != nil {
			return bad, nil
		}
	}
	req.Parsed = body.parsed(req.Model)
	return nil, nil
}

var (
	geminiName = lazy.Regexp(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)
	gemini3    = lazy.Regexp(`^gemini-[3-9]`)
)

// checkTools checks tools and tool choice:
// https://ai.google.dev/gemini-api/docs/function-calling.
func (b *geminiBody) checkTools(name string) *Fault {
	known := map[string]bool{}
	for _, t := range b.Tools {
		for i, f := range t.FunctionDeclarations {
			switch {
			case !geminiName().MatchString(f.Name):
				return refuse("", "* GenerateContentRequest.tools[0].function_declarations[%d].name: Invalid function name. Must start with a letter or an underscore.", i)
			case known[f.Name]:
				return refuse("", "Duplicate function declaration found: %s", f.Name)
			case len(f.Parameters) > 0 && len(f.ParametersJSONSchema) > 0:
				return refuse("", "* GenerateContentRequest.tools[0].function_declarations[%d]: parameters and parameters_json_schema are mutually exclusive.", i)
			}
			if bad := geminiSchema(f.Parameters); bad != nil {
				return bad
			}
			if len(f.ParametersJSONSchema) > 0 {
				if err := CheckSchema(Gemini, name, f.ParametersJSONSchema); err != nil {
					return refuse("", "* GenerateContentRequest.tools[0].function_declarations[%d].parameters: %v", i, err)
				}
			}
			known[f.Name] = true
		}
	}
	c := b.ToolConfig.FunctionCallingConfig
	switch {
	case !slices.Contains([]string{"", "AUTO", "ANY", "NONE", "VALIDATED"}, c.Mode):
		return refuse("", "Invalid value at 'tool_config.function_calling_config.mode' (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), %q", c.Mode)
	case len(c.AllowedFunctionNames) > 0 && c.Mode != "ANY" && c.Mode != "VALIDATED":
		return refuse("", "Please set allowed_function_names only when function calling mode is ANY.")
	case len(known) > 0 && b.GenerationConfig.ResponseMimeType == "application/json" && !gemini3().MatchString(name):
		return refuse("", "Function calling with a response mime type: 'application/json' is unsupported")
	}
	for _, n := range c.AllowedFunctionNames {
		if !known[n] {
			return refuse("", "allowed_function_names: %s is not among the function declarations", n)
		}
	}
	return nil
}

// geminiSchemaMembers are those of https://ai.google.dev/api/caching#Schema.
const geminiSchemaMembers = " type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength" +
	" pattern example anyOf propertyOrdering default items minimum maximum "

// geminiSchema checks a schema in the service's own format.
func geminiSchema(raw json.RawMessage) *Fault {
	if len(raw) == 0 {
		return nil
	}
	var schema struct {
		Properties map[string]json.RawMessage
		Items      json.RawMessage
		AnyOf      []json.RawMessage
	}
	if name := unknownMember(raw, geminiSchemaMembers); name != "" {
		return refuse("", "Invalid JSON payload received. Unknown name %q at 'tools[0].function_declarations[0].parameters': Cannot find field.", name)
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return refuse("", "Invalid JSON payload received. %v", err)
	}
	below := append(schema.AnyOf, schema.Items)
	for _, p := range schema.Properties {
		below = append(below, p)
	}
	for _, p := range below {
		if bad := geminiSchema(p); bad != nil {
			return bad
		}
	}
	return nil
}

// check checks the configuration:
// https://ai.google.dev/gemini-api/docs/thinking.
func (c *geminiConfig) check(name string) *Fault {
	schemas := len(c.ResponseSchema) + len(c.ResponseJSONSchema)
	switch {
	case schemas > 0 && c.ResponseMimeType != "application/json":
		return refuse("", "* GenerateContentRequest.generation_config.response_schema: only allowed when response_mime_type is application/json")
	case len(c.ResponseSchema) > 0 && len(c.ResponseJSONSchema) > 0:
		return refuse("", "* GenerateContentRequest.generation_config: response_schema and response_json_schema are mutually exclusive")
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 2):
		return refuse("", "* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].")
	}
	t := c.ThinkingConfig
	if t == nil {
		return nil
	}
	switch {
	case t.ThinkingBudget != nil && t.ThinkingLevel != "":
		return refuse("", "You can only set only one of thinking budget and thinking level.")
	case t.ThinkingLevel != "" && !gemini3().MatchString(name):
		return refuse("", "Thinking level is not supported for this model.")
	case !slices.Contains([]string{"", "MINIMAL", "LOW", "MEDIUM", "HIGH"}, strings.ToUpper(t.ThinkingLevel)):
		return refuse("", "Invalid value at 'generation_config.thinking_config.thinking_level', %q", t.ThinkingLevel)
	case t.ThinkingBudget != nil && *t.ThinkingBudget == 0 && strings.Contains(name, "-pro"):
		return refuse("", "Budget 0 is invalid. This model only works in thinking mode.")
	case t.ThinkingBudget != nil && (*t.ThinkingBudget < -1 || *t.ThinkingBudget > 32768):
		return refuse("", "The thinking budget %d is invalid. Please choose a value between 0 and 32768.", *t.ThinkingBudget)
	}
	return nil
}

// count returns the calls and the results of a content.
func (c *geminiContent) count() (calls, results int) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			calls++
		}
		if p.FunctionResponse != nil {
			results++
		}
	}
	return calls, results
}

// checkTurns checks the roles, and that calls are followed by their results.
func (b *geminiBody) checkTurns() *Fault {
	if len(b.Contents) == 0 {
		return refuse("", "* GenerateContentRequest.contents: contents is not specified")
	}
	open, before := 0, ""
	for i := range b.Contents {
		c := &b.Contents[i]
		calls, results := c.count()
		switch {
		case c.Role != "user" && c.Role != "model":
			return refuse("", "Please use a valid role: user, model.")
		case len(c.Parts) == 0:
			return refuse("", "* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		case calls > 0 && (c.Role != "model" || before != "user"):
			return refuse("", "Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		case results > 0 && c.Role != "user", results > 0 && open == 0:
			return refuse("", "Please ensure that function response turn comes immediately after a function call turn.")
		case results != open:
			return refuse("", "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
		if bad := c.checkParts(i); bad != nil {
			return bad
		}
		open, before = calls, c.Role
	}
	if open > 0 {
		return refuse("", "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	return nil
}

func (c *geminiContent) checkParts(i int) *Fault {
	for j, p := range c.Parts {
		var fields map[string]json.RawMessage
		data := 0
		for _, set := range []bool{p.Text != "", p.InlineData != nil, p.FunctionCall != nil, p.FunctionResponse != nil, len(p.FileData) > 0} {
			if set {
				data++
			}
		}
		f, r := p.FunctionCall, p.FunctionResponse
		switch {
		case data > 1:
			return refuse("", "Invalid value (oneof), oneof field 'data' is already set. (contents[%d].parts[%d])", i, j)
		case data == 0 && p.ThoughtSignature == "":
			return refuse("", "* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field", i, j)
		case f != nil && !geminiName().MatchString(f.Name), r != nil && !geminiName().MatchString(r.Name):
			return refuse("", "* GenerateContentRequest.contents[%d].parts[%d].function_response.name: Name cannot be empty.", i, j)
		case f != nil && len(f.Args) > 0 && json.Unmarshal(f.Args, &fields) != nil:
			return refuse("", "Invalid value at 'contents[%d].parts[%d].function_call.args' (type.googleapis.com/google.protobuf.Struct)", i, j)
		case r != nil && json.Unmarshal(r.Response, &fields) != nil:
			return refuse("", "Invalid value at 'contents[%d].parts[%d].function_response.response' (type.googleapis.com/google.protobuf.Struct)", i, j)
		}
	}
	return nil
}

// skipped are the signatures that replace a missing one:
// https://ai.google.dev/gemini-api/docs/thought-signatures.
var skipped = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

// checkSignatures checks that signatures are those that were sent, with the same
// part. Gemini 3 requires one with the first call of each step since the last user
// message.
func (b *geminiBody) checkSignatures(s *Server, name string) *Fault {
	spoke := 0
	for i := range b.Contents {
		if _, results := b.Contents[i].count(); b.Contents[i].Role == "user" && results == 0 {
			spoke = i
		}
	}
	for i := range b.Contents {
		first := true
		for j, p := range b.Contents[i].Parts {
			called := ""
			if p.FunctionCall != nil {
				called = p.FunctionCall.Name
			}
			text, issued := s.signed(p.ThoughtSignature)
			switch {
			case p.ThoughtSignature == "" && called != "" && first && i > spoke && gemini3().MatchString(name):
				return refuse("", "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.", called, j+1)
			case p.ThoughtSignature == "" || slices.Contains(skipped, p.ThoughtSignature):
			case !issued || text != called:
				return refuse("", "Corrupted thought signature.")
			}
			first = first && called == ""
		}
	}
	return nil
}

// checkImages checks data, and that only models that support images in results
// get them: https://ai.google.dev/gemini-api/docs/function-calling#multimodal.
func (b *geminiBody) checkImages(name string) *Fault {
	for _, c := range b.Contents {
		for _, p := range c.Parts {
			inner := []geminiPart{p}
			if r := p.FunctionResponse; r != nil {
				inner = r.Parts
				if len(r.Parts) > 0 && !gemini3().MatchString(name) {
					return refuse("", "Multimodal function responses are not supported by this model.")
				}
			}
			for _, q := range inner {
				if d := q.InlineData; d != nil {
					if _, err := base64.StdEncoding.DecodeString(d.Data); err != nil || d.MimeType == "" {
						return refuse("", "Unable to process input image. Please retry or report.")
					}
				}
			}
		}
	}
	return nil
}

// parsed returns the parsed form of a valid request.
func (b *geminiBody) parsed(name string) Parsed {
	c := &b.GenerationConfig
	s := Parsed{Model: name, MaxTokens: c.MaxOutputTokens, Temperature: c.Temperature, OutputSchema: slices.Concat(c.ResponseSchema, c.ResponseJSONSchema)}
	if t := c.ThinkingConfig; t != nil {
		s.Effort = strings.ToLower(t.ThinkingLevel)
		if t.ThinkingBudget != nil {
			s.Effort = fmt.Sprint(*t.ThinkingBudget)
		}
	}
	if b.SystemInstruction != nil {
		var texts []string
		for _, p := range b.SystemInstruction.Parts {
			texts = append(texts, p.Text)
		}
		s.System = strings.Join(texts, "\n")
	}
	for _, t := range b.Tools {
		for _, f := range t.FunctionDeclarations {
			s.Tools = append(s.Tools, model.ToolDef{Name: f.Name, Description: f.Description, Schema: slices.Concat(f.Parameters, f.ParametersJSONSchema)})
		}
	}
	s.ToolChoice = b.ToolConfig.choice()
	ids := geminiIDs{}
	for i := range b.Contents {
		ids.add(&s, &b.Contents[i])
	}
	return s
}

func (t *geminiToolConfig) choice() model.ToolChoice {
	c := t.FunctionCallingConfig
	switch {
	case c.Mode == "ANY" && len(c.AllowedFunctionNames) == 1:
		return model.ToolChoice(c.AllowedFunctionNames[0])
	case c.Mode == "ANY":
		return model.ToolChoiceRequired
	case c.Mode == "AUTO":
		return model.ToolChoiceAuto
	case c.Mode == "NONE":
		return model.ToolChoiceNone
	}
	return model.ToolChoice(c.Mode)
}

// geminiIDs gives ids to calls without one, and finds the call of a result.
type geminiIDs struct {
	n    int
	open []geminiCall
}

func (ids *geminiIDs) add(s *Parsed, c *geminiContent) {
	role := model.RoleUser
	if c.Role == "model" {
		role, ids.open = model.RoleAssistant, nil
	}
	for _, p := range c.Parts {
		if p.ThoughtSignature != "" && !slices.Contains(skipped, p.ThoughtSignature) {
			s.add(role, opaque(p.ThoughtSignature))
		}
		switch {
		case p.FunctionCall != nil:
			call := *p.FunctionCall
			if ids.n++; call.ID == "" {
				call.ID = fmt.Sprintf("#%d", ids.n)
			}
			ids.open = append(ids.open, call)
			s.add(role, model.ToolCall{ID: call.ID, Name: call.Name, Args: string(call.Args)})
		case p.FunctionResponse != nil:
			s.add(model.RoleTool, ids.result(p.FunctionResponse))
		case p.InlineData != nil:
			s.add(role, p.InlineData.image())
		case p.Thought:
			s.add(role, model.Reasoning{Text: p.Text})
		case p.Text != "":
			s.add(role, model.Text{Text: p.Text})
		}
	}
}

// result returns a result, of the call with its id, or else the first of its name.
func (ids *geminiIDs) result(r *geminiResponse) model.ToolResult {
	at := slices.IndexFunc(ids.open, func(c geminiCall) bool { return c.ID == r.ID })
	if r.ID == "" {
		at = slices.IndexFunc(ids.open, func(c geminiCall) bool { return c.Name == r.Name })
	}
	out := model.ToolResult{Name: r.Name, Content: model.TextParts(string(r.Response))}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(r.Response, &fields) // it has been checked
	_, out.IsError = fields["error"]
	if at >= 0 {
		out.CallID = ids.open[at].ID
		ids.open = slices.Delete(ids.open, at, at+1)
	}
	for _, p := range r.Parts {
		if p.InlineData != nil {
			out.Content = append(out.Content, p.InlineData.image())
		}
	}
	return out
}

func (d *geminiData) image() model.Image {
	img := model.Image{MediaType: d.MimeType}
	img.Data, _ = base64.StdEncoding.DecodeString(d.Data) // it has been checked
	return img
}
