package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/mcp/internal/conformancetest"
)

// TestConformance runs the suite against this package's protocol, transport and
// guard. The tools, resources and prompts that the suite expects are defined here.
func TestConformance(t *testing.T) {
	for _, revision := range conformancetest.Revisions {
		t.Run(revision, func(t *testing.T) {
			conformancetest.Run(t, "server", revision, "--url", suiteServer(t)+Path)
		})
	}
}

// suiteServer starts a server with what the suite expects, and returns its URL.
func suiteServer(t *testing.T) string {
	p := newProtocol("1", "", slog.New(slog.DiscardHandler))
	for _, add := range []func(*protocol){addSchemaTools, addContentTools, addTalkingTools, addAskingTools, addInputTools, addDiagnosticTools, addResources, addPrompts, addOther} {
		add(p)
	}
	web := httptest.NewServer(guard(newTransport(p), ""))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// Smallest files of their kind.
const (
	pngPixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
	wavEmpty = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
)

type result = mcp.CallToolResult

// toolCall is a call of one of the suite's tools.
type toolCall struct {
	*request
	*callParams
}

// text returns an argument.
func (c toolCall) text(name, otherwise string) string {
	var args map[string]any
	if json.Unmarshal(c.Arguments, &args) == nil {
		if text, ok := args[name].(string); ok {
			return text
		}
	}
	return otherwise
}

func addTool(p *protocol, name string, run func(ctx context.Context, c toolCall) (*result, error), opts ...mcp.ToolOption) {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.tools))
	p.mu.Unlock()
	p.setTools(append(all, tool{
		Tool: mcp.NewTool(name, append([]mcp.ToolOption{mcp.WithDescription("For the conformance suite.")}, opts...)...),
		call: func(ctx context.Context, r *request, params *callParams) (*result, error) {
			return run(ctx, toolCall{r, params})
		},
	})...)
}

// addMethod adds a method to all versions of the protocol.
func addMethod(p *protocol, name mcp.MCPMethod, m method) {
	p.legacy[string(name)], p.modern[string(name)] = m, m
}

func content(parts ...mcp.Content) (*result, error) { return &result{Content: parts}, nil }

func textf(format string, args ...any) (*result, error) {
	return content(mcp.NewTextContent(fmt.Sprintf(format, args...)))
}

// addSchemaTools adds tools whose schemas must be preserved, and whose arguments
// are also sent as headers.
func addSchemaTools(p *protocol) {
	for name, schema := range map[string]string{
		"json_schema_2020_12_tool": `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
			"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
			"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]},
				"phone": {"type": "string"}, "email": {"type": "string"}},
			"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
			"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]}, "then": {"required": ["phone"]}, "else": {"required": ["email"]},
			"additionalProperties": false}`,
		"test_header": `{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}`,
	} {
		addTool(p, name, func(context.Context, toolCall) (*result, error) { return textf("done") }, func(t *mcp.Tool) {
			t.InputSchema, t.RawInputSchema = mcp.ToolInputSchema{}, json.RawMessage(schema)
		})
	}
}

func addContentTools(p *protocol) {
	embedded := func(uri, kind, text string) mcp.Content {
		return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: text})
	}
	for name, parts := range map[string][]mcp.Content{
		"test_simple_text":       {mcp.NewTextContent("This is a simple text response for testing.")},
		"test_image_content":     {mcp.NewImageContent(pngPixel, "image/png")},
		"test_audio_content":     {mcp.NewAudioContent(wavEmpty, "audio/wav")},
		"test_embedded_resource": {embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")},
		"test_multiple_content_types": {
			mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(pngPixel, "image/png"),
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`),
		},
	} {
		addTool(p, name, func(context.Context, toolCall) (*result, error) { return content(parts...) })
	}
	addTool(p, "test_error_handling", func(context.Context, toolCall) (*result, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
}

// addTalkingTools adds tools that send notifications. The pauses are required by
// the suite.
func addTalkingTools(p *protocol) {
	const pause = 50 * time.Millisecond
	tell := func(c toolCall, method mcp.MCPMethod, all ...map[string]any) error {
		for _, params := range all {
			if err := c.send(notification(method, params)); err != nil {
				return err
			}
			time.Sleep(pause)
		}
		return nil
	}
	addTool(p, "test_tool_with_logging", func(_ context.Context, c toolCall) (*result, error) {
		say := func(text string) map[string]any { return map[string]any{"level": "info", "data": text} }
		if err := tell(c, mcp.MethodNotificationMessage, say("Tool execution started"), say("Tool processing data"), say("Tool execution completed")); err != nil {
			return nil, err
		}
		return textf("done")
	})
	addTool(p, "test_tool_with_progress", func(_ context.Context, c toolCall) (*result, error) {
		if c.meta.ProgressToken == nil {
			return textf("no progress token")
		}
		at := func(done int) map[string]any {
			return map[string]any{"progressToken": c.meta.ProgressToken, "progress": done, "total": 100}
		}
		if err := tell(c, mcp.MethodNotificationProgress, at(0), at(50), at(100)); err != nil {
			return nil, err
		}
		return textf("done")
	})
}

type object = map[string]any

func form(properties object, required ...string) object {
	return object{"type": "object", "properties": properties, "required": append([]string{}, required...)}
}

// addAskingTools adds tools that send requests to the client, as before 2026-07-28.
func addAskingTools(p *protocol) {
	addTool(p, "test_sampling", func(ctx context.Context, c toolCall) (*result, error) {
		data, err := c.ask(ctx, mcp.MethodSamplingCreateMessage, samplingOf(c.text("prompt", "")))
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return textf("LLM response: %s", sampled(data))
	}, mcp.WithString("prompt", mcp.Required()))
	ask := func(name, message string, schema object, opts ...mcp.ToolOption) {
		addTool(p, name, func(ctx context.Context, c toolCall) (*result, error) {
			data, err := c.ask(ctx, mcp.MethodElicitationCreate, mcp.ElicitationParams{Message: c.text("message", message), RequestedSchema: schema})
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			given := parseAnswer(data)
			return textf("User response: action=%s, content=%s", given.result.Action, given.result.Content)
		}, opts...)
	}
	ask("test_elicitation", "", form(object{"username": object{"type": "string"}, "email": object{"type": "string"}}, "username", "email"), mcp.WithString("message", mcp.Required()))
	ask("test_elicitation_sep1034_defaults", "Your data, please", form(object{
		"name": object{"type": "string", "default": "John Doe"}, "age": object{"type": "integer", "default": 30}, "score": object{"type": "number", "default": 95.5},
		"status": object{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"}, "verified": object{"type": "boolean", "default": true},
	}))
	titled := func(title, value string) object { return object{"const": value, "title": title} }
	ask("test_elicitation_sep1330_enums", "Choose, please", form(object{
		"untitledSingle": object{"type": "string", "enum": []string{"option1", "option2", "option3"}},
		"titledSingle":   object{"type": "string", "oneOf": []object{titled("One", "value1"), titled("Two", "value2")}},
		"legacyEnum":     object{"type": "string", "enum": []string{"opt1", "opt2"}, "enumNames": []string{"One", "Two"}},
		"untitledMulti":  object{"type": "array", "items": object{"type": "string", "enum": []string{"option1", "option2"}}},
		"titledMulti":    object{"type": "array", "items": object{"anyOf": []object{titled("One", "value1"), titled("Two", "value2")}}},
	}))
}

func samplingOf(text string) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{MaxTokens: 100, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}}}
}

func sampled(data json.RawMessage) string {
	var res struct{ Content struct{ Text string } }
	_ = json.Unmarshal(data, &res) // invalid data has no text
	return res.Content.Text
}

// want is a question of a tool, as of 2026-07-28.
type want struct {
	key, kind, text, field string
}

func (w want) add(to mcp.InputRequests) {
	switch w.kind {
	case "elicit":
		to[w.key] = mcp.NewElicitationInputRequest(mcp.ElicitationParams{Message: w.text, RequestedSchema: form(object{w.field: object{"type": "string"}}, w.field)})
	case "sample":
		to[w.key] = mcp.NewSamplingInputRequest(samplingOf(w.text))
	case "roots":
		to[w.key] = mcp.NewRootsInputRequest()
	}
}

// asking returns the fields of a result that asks.
func asking(state string, wants ...want) (mcp.Result, mcp.MultiRoundTripResult) {
	all := mcp.InputRequests{}
	for _, w := range wants {
		w.add(all)
	}
	return mcp.Result{ResultType: mcp.ResultTypeInputRequired}, mcp.MultiRoundTripResult{InputRequests: all, RequestState: state}
}

func toolAsks(state string, wants ...want) (*result, error) {
	res, trip := asking(state, wants...)
	return &result{Result: res, MultiRoundTripResult: trip}, nil
}

// answered returns the client's answer, "" if there is none.
func (w want) answered(given map[string]json.RawMessage) string {
	data, ok := given[w.key]
	if !ok {
		return ""
	}
	switch w.kind {
	case "elicit":
		if a := parseAnswer(data); a.err == nil {
			return string(a.result.Content)
		}
	case "sample":
		return sampled(data)
	case "roots":
		var roots mcp.ListRootsResult
		if json.Unmarshal(data, &roots) == nil {
			return fmt.Sprint(roots.Roots)
		}
	}
	return ""
}

var (
	wantName  = want{"user_name", "elicit", "What is your name?", "name"}
	wantWords = want{"greeting", "sample", "Generate a greeting", ""}
	wantRoots = want{"client_roots", "roots", "", ""}
)

// addInputTools adds tools that need several requests for one call.
func addInputTools(p *protocol) {
	for name, wants := range map[string][]want{
		"test_input_required_result_elicitation":     {wantName},
		"test_input_required_result_sampling":        {{"capital_question", "sample", "What is the capital of France?", ""}},
		"test_input_required_result_list_roots":      {wantRoots},
		"test_input_required_result_multiple_inputs": {wantName, wantWords, wantRoots},
		"test_input_required_result_request_state":   {{"confirm", "elicit", "Please confirm", "ok"}},
		"test_input_required_result_tampered_state":  {{"confirm", "elicit", "Please confirm", "ok"}},
	} {
		addTool(p, name, func(_ context.Context, c toolCall) (*result, error) { return inOneRound(c, wants) })
	}
	addTool(p, "test_input_required_result_multi_round", func(_ context.Context, c toolCall) (*result, error) {
		steps := []want{{"step1", "elicit", "Step 1: What is your name?", "name"}, {"step2", "elicit", "Step 2: What is your favorite color?", "color"}}
		done := 0
		if _, err := fmt.Sscanf(c.RequestState, "after %d", &done); err == nil && steps[min(done, 1)].answered(c.InputResponses) != "" {
			done++
		}
		if done >= len(steps) {
			return textf("both answered")
		}
		return toolAsks(fmt.Sprintf("after %d", done), steps[done])
	})
	addTool(p, "test_input_required_result_capabilities", func(_ context.Context, c toolCall) (*result, error) {
		var wants []want
		can := c.capabilities()
		if can.Elicitation != nil {
			wants = append(wants, wantName)
		}
		if can.Sampling != nil {
			wants = append(wants, wantWords)
		}
		return inOneRound(c, wants)
	})
}

// inOneRound asks all unanswered questions, with a tamper-proof state.
func inOneRound(c toolCall, wants []want) (*result, error) {
	mac := hmac.New(sha256.New, []byte("the key of this test"))
	mac.Write([]byte(c.Name))
	state := hex.EncodeToString(mac.Sum(nil))
	if c.RequestState != "" && c.RequestState != state {
		return nil, errors.New("requestState was changed")
	}
	var missing []want
	answers := []string{"state-ok"}
	for _, w := range wants {
		answer := w.answered(c.InputResponses)
		if answers = append(answers, answer); answer == "" {
			missing = append(missing, w)
		}
	}
	if len(missing) > 0 {
		return toolAsks(state, missing...)
	}
	return textf("%s", strings.Join(answers, " "))
}

// addDiagnosticTools adds the tools with which the suite tests statelessness.
func addDiagnosticTools(p *protocol) {
	addTool(p, "test_missing_capability", func(_ context.Context, c toolCall) (*result, error) {
		if c.capabilities().Sampling == nil {
			err := fault(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client has to have the capability sampling")
			err.Data = jsonrpc.Encode(object{"requiredCapabilities": object{"sampling": object{}}})
			return nil, err
		}
		return textf("the client can sample")
	})
	addTool(p, "test_streaming_elicitation", func(_ context.Context, c toolCall) (*result, error) { return inOneRound(c, []want{wantName}) })
	addTool(p, "test_logging_tool", func(_ context.Context, c toolCall) (*result, error) {
		if c.meta.LogLevel != "" {
			if err := c.send(notification(mcp.MethodNotificationMessage, object{"level": "info", "data": "only for who asked for it"})); err != nil {
				return nil, err
			}
		}
		return textf("logged")
	})
	addTool(p, "test_trigger_tool_change", func(context.Context, toolCall) (*result, error) {
		addTool(p, "test_came_later", func(context.Context, toolCall) (*result, error) { return textf("here") })
		return textf("changed")
	})
}

func addResources(p *protocol) {
	p.capabilities.Resources = &struct {
		Subscribe   bool `json:"subscribe,omitempty"`
		ListChanged bool `json:"listChanged,omitempty"`
	}{Subscribe: true}
	text := mcp.TextResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."}
	picture := mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: pngPixel}
	addMethod(p, mcp.MethodResourcesList, func(context.Context, *request) (mcp.ResultMetadata, error) {
		return &mcp.ListResourcesResult{Resources: []mcp.Resource{
			mcp.NewResource(text.URI, "static-text", mcp.WithMIMEType(text.MIMEType)), mcp.NewResource(picture.URI, "static-binary", mcp.WithMIMEType(picture.MIMEType)),
			mcp.NewResource("test://watched-resource", "watched"),
		}}, nil
	})
	addMethod(p, mcp.MethodResourcesTemplatesList, func(context.Context, *request) (mcp.ResultMetadata, error) {
		return &mcp.ListResourceTemplatesResult{ResourceTemplates: []mcp.ResourceTemplate{mcp.NewResourceTemplate("test://template/{id}/data", "template", mcp.WithTemplateMIMEType("application/json"))}}, nil
	})
	addMethod(p, mcp.MethodResourcesRead, func(_ context.Context, r *request) (mcp.ResultMetadata, error) {
		var params mcp.ReadResourceParams
		if err := r.params(&params); err != nil {
			return nil, err
		}
		id, under := strings.CutPrefix(params.URI, "test://template/")
		id, data := strings.CutSuffix(id, "/data")
		switch {
		case params.URI == text.URI:
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{text}}, nil
		case params.URI == picture.URI:
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{picture}}, nil
		case under && data:
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{
				URI: params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id),
			}}}, nil
		}
		err := fault(mcp.INVALID_PARAMS, "there is no resource %q", params.URI)
		err.Data = jsonrpc.Encode(object{"uri": params.URI})
		return nil, err
	})
}

// addOther adds methods that do nothing.
func addOther(p *protocol) {
	p.capabilities.Logging, p.capabilities.Completions = &struct{}{}, &struct{}{}
	for _, name := range []mcp.MCPMethod{mcp.MethodSetLogLevel, mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe} {
		p.legacy[string(name)] = func(context.Context, *request) (mcp.ResultMetadata, error) { return &mcp.Result{}, nil }
	}
	addMethod(p, mcp.MethodCompletionComplete, func(context.Context, *request) (mcp.ResultMetadata, error) {
		return &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}, nil
	})
}

func addPrompts(p *protocol) {
	p.capabilities.Prompts = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{}
	says := func(c ...mcp.Content) *mcp.GetPromptResult {
		var out []mcp.PromptMessage
		for _, one := range c {
			out = append(out, mcp.PromptMessage{Role: mcp.RoleUser, Content: one})
		}
		return &mcp.GetPromptResult{Messages: out}
	}
	described := mcp.WithPromptDescription("For the conformance suite.")
	addMethod(p, mcp.MethodPromptsList, func(context.Context, *request) (mcp.ResultMetadata, error) {
		return &mcp.ListPromptsResult{Prompts: []mcp.Prompt{
			mcp.NewPrompt("test_simple_prompt", described), mcp.NewPrompt("test_prompt_with_image", described), mcp.NewPrompt("test_input_required_result_prompt", described),
			mcp.NewPrompt("test_prompt_with_arguments", described, mcp.WithArgument("arg1", mcp.RequiredArgument()), mcp.WithArgument("arg2", mcp.RequiredArgument())),
			mcp.NewPrompt("test_prompt_with_embedded_resource", described, mcp.WithArgument("resourceUri", mcp.RequiredArgument())),
		}}, nil
	})
	addMethod(p, mcp.MethodPromptsGet, func(_ context.Context, r *request) (mcp.ResultMetadata, error) {
		var params struct {
			Name           string
			Arguments      map[string]string
			InputResponses map[string]json.RawMessage
		}
		if err := r.params(&params); err != nil {
			return nil, err
		}
		switch params.Name {
		case "test_simple_prompt":
			return says(mcp.NewTextContent("This is a simple prompt for testing.")), nil
		case "test_prompt_with_arguments":
			return says(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", params.Arguments["arg1"], params.Arguments["arg2"]))), nil
		case "test_prompt_with_embedded_resource":
			return says(mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: params.Arguments["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}),
				mcp.NewTextContent("Please process the embedded resource above.")), nil
		case "test_prompt_with_image":
			return says(mcp.NewImageContent(pngPixel, "image/png"), mcp.NewTextContent("Please analyze the image above.")), nil
		case "test_input_required_result_prompt":
			w := want{"user_context", "elicit", "What context should the prompt use?", "context"}
			if answer := w.answered(params.InputResponses); answer != "" {
				return says(mcp.NewTextContent("Use " + answer)), nil
			}
			res, trip := asking("", w)
			return &mcp.GetPromptResult{Result: res, MultiRoundTripResult: trip}, nil
		}
		return nil, fault(mcp.INVALID_PARAMS, "there is no prompt %q", params.Name)
	})
}
