package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/seed-009c0928/agent/mcp/conformancetest"
)

// TestConformance runs the suite against this package's protocol, transport and
// guard, with the tools, resources and prompts that the suite wants to find.
//
// Known: docs/decisions/014-mcp-conformance.md.
func TestConformance(t *testing.T) {
	known := map[string]map[string]string{"2026-07-28": {
		"server-stateless": "mcp-go 1.2.1 has no way for a tool to answer with error -32021; no tool of the agent needs a capability of the client",
	}}
	for _, revision := range conformancetest.Revisions {
		t.Run(revision, func(t *testing.T) {
			conformancetest.Run(t, "server", revision, known[revision], "--url", suiteServer(t)+Path)
		})
	}
}

// suiteServer starts a server with what the suite wants, and returns its root.
func suiteServer(t *testing.T) string {
	log := slog.New(slog.DiscardHandler)
	p := newProtocol(Options{Version: "1", Logger: log}, &server.Hooks{},
		server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true), server.WithCompletions(), server.WithLogging())
	p.EnableSampling()
	h := newHTTP(p, log)
	for _, add := range []func(*server.MCPServer){addContentTools, addTalkingTools, addAskingTools, addInputTools, addDiagnosticTools, addResources, addPrompts} {
		add(p)
	}
	web := httptest.NewServer(guard(h, ""))
	t.Cleanup(func() {
		h.CloseSessions(context.Background())
		web.CloseClientConnections()
		web.Close()
		_ = h.Shutdown(context.Background())
	})
	return web.URL
}

// Smallest files of their kind.
const (
	pngPixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
	wavEmpty = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
)

type result = mcp.CallToolResult

func addTool(p *server.MCPServer, name string, run func(ctx context.Context, req mcp.CallToolRequest) (*result, error), opts ...mcp.ToolOption) {
	p.AddTool(mcp.NewTool(name, append([]mcp.ToolOption{mcp.WithDescription("For the conformance suite.")}, opts...)...), run)
}

func content(parts ...mcp.Content) (*result, error) { return &result{Content: parts}, nil }

func textf(format string, args ...any) (*result, error) {
	return content(mcp.NewTextContent(fmt.Sprintf(format, args...)))
}

func addContentTools(p *server.MCPServer) {
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
		addTool(p, name, func(context.Context, mcp.CallToolRequest) (*result, error) { return content(parts...) })
	}
	addTool(p, "test_error_handling", func(context.Context, mcp.CallToolRequest) (*result, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
}

// addTalkingTools adds tools that tell of what they do. The pauses are the
// suite's; the last one lets the last message out before the result.
func addTalkingTools(p *server.MCPServer) {
	const pause = 50 * time.Millisecond
	tell := func(ctx context.Context, method mcp.MCPMethod, all ...map[string]any) error {
		for _, params := range all {
			if err := p.SendNotificationToClient(ctx, string(method), params); err != nil {
				return err
			}
			time.Sleep(pause)
		}
		return nil
	}
	addTool(p, "test_tool_with_logging", func(ctx context.Context, _ mcp.CallToolRequest) (*result, error) {
		say := func(text string) map[string]any { return map[string]any{"level": "info", "data": text} }
		if err := tell(ctx, mcp.MethodNotificationMessage, say("Tool execution started"), say("Tool processing data"), say("Tool execution completed")); err != nil {
			return nil, err
		}
		return textf("done")
	})
	addTool(p, "test_tool_with_progress", func(ctx context.Context, req mcp.CallToolRequest) (*result, error) {
		if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
			return textf("nobody wants to know")
		}
		at := func(done int) map[string]any {
			return map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": done, "total": 100}
		}
		if err := tell(ctx, mcp.MethodNotificationProgress, at(0), at(50), at(100)); err != nil {
			return nil, err
		}
		return textf("done")
	})
}

type object = map[string]any

func form(properties object, required ...string) object {
	return object{"type": "object", "properties": properties, "required": append([]string{}, required...)}
}

// addAskingTools adds tools that ask the client as before 2026-07-28.
func addAskingTools(p *server.MCPServer) {
	addTool(p, "test_sampling", func(ctx context.Context, req mcp.CallToolRequest) (*result, error) {
		//lint:ignore SA1019 the suite wants it of servers of before 2026-07-28
		res, err := p.RequestSampling(ctx, mcp.CreateMessageRequest{
			Request: mcp.Request{Method: string(mcp.MethodSamplingCreateMessage)}, CreateMessageParams: samplingOf(req.GetString("prompt", "")),
		})
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return textf("LLM response: %s", sampled(res))
	}, mcp.WithString("prompt", mcp.Required()))
	ask := func(name, message string, schema object, opts ...mcp.ToolOption) {
		addTool(p, name, func(ctx context.Context, req mcp.CallToolRequest) (*result, error) {
			res, err := p.RequestElicitation(ctx, mcp.ElicitationRequest{
				Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)},
				Params:  mcp.ElicitationParams{Message: req.GetString("message", message), RequestedSchema: schema},
			})
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return textf("User response: action=%s, content=%v", res.Action, res.Content)
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

func sampled(res *mcp.CreateMessageResult) string {
	if text, ok := res.Content.(mcp.TextContent); ok {
		return text.Text
	}
	return fmt.Sprint(res.Content)
}

// want is one question of a tool, as of 2026-07-28.
type want struct {
	key, kind, text, field string
}

func (w want) add(b *server.InputRequestBuilder) {
	switch w.kind {
	case "elicit":
		b.Elicit(w.key, mcp.ElicitationParams{Message: w.text, RequestedSchema: form(object{w.field: object{"type": "string"}}, w.field)})
	case "sample":
		b.Sample(w.key, samplingOf(w.text))
	case "roots":
		b.Roots(w.key)
	}
}

// answered returns the client's answer, "" if there is none.
func (w want) answered(given mcp.InputResponses) string {
	switch w.kind {
	case "elicit":
		if a := server.ElicitationResponse(given, w.key); a != nil && a.Action != "" {
			return fmt.Sprint(a.Content)
		}
	case "sample":
		if a := server.SamplingResponse(given, w.key); a != nil {
			return sampled(a)
		}
	case "roots":
		if a := server.RootsResponse(given, w.key); a != nil {
			return fmt.Sprint(a.Roots)
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
func addInputTools(p *server.MCPServer) {
	for name, wants := range map[string][]want{
		"test_input_required_result_elicitation":     {wantName},
		"test_input_required_result_sampling":        {{"capital_question", "sample", "What is the capital of France?", ""}},
		"test_input_required_result_list_roots":      {wantRoots},
		"test_input_required_result_multiple_inputs": {wantName, wantWords, wantRoots},
		"test_input_required_result_request_state":   {{"confirm", "elicit", "Please confirm", "ok"}},
		"test_input_required_result_tampered_state":  {{"confirm", "elicit", "Please confirm", "ok"}},
	} {
		addTool(p, name, func(_ context.Context, req mcp.CallToolRequest) (*result, error) { return inOneRound(req, wants) })
	}
	addTool(p, "test_input_required_result_multi_round", func(_ context.Context, req mcp.CallToolRequest) (*result, error) {
		steps := []want{{"step1", "elicit", "Step 1: What is your name?", "name"}, {"step2", "elicit", "Step 2: What is your favorite color?", "color"}}
		done := 0
		if _, err := fmt.Sscanf(req.Params.RequestState, "after %d", &done); err == nil && steps[min(done, 1)].answered(req.Params.InputResponses) != "" {
			done++
		}
		if done >= len(steps) {
			return textf("both answered")
		}
		b := server.NewInputRequestBuilder(fmt.Sprintf("after %d", done))
		steps[done].add(b)
		return b.ToolResult(), nil
	})
	addTool(p, "test_input_required_result_capabilities", func(ctx context.Context, req mcp.CallToolRequest) (*result, error) {
		var wants []want
		can := server.RequestProtocolInfoFromContext(ctx).ClientCapabilities
		if can.Elicitation != nil {
			wants = append(wants, wantName)
		}
		if can.Sampling != nil {
			wants = append(wants, wantWords)
		}
		return inOneRound(req, wants)
	})
}

// inOneRound asks all that is not answered, with a state that cannot be changed
// on its way.
func inOneRound(req mcp.CallToolRequest, wants []want) (*result, error) {
	mac := hmac.New(sha256.New, []byte("the key of this test"))
	mac.Write([]byte(req.Params.Name))
	state := hex.EncodeToString(mac.Sum(nil))
	if given := req.Params.RequestState; given != "" && given != state {
		return nil, errors.New("requestState was changed")
	}
	b := server.NewInputRequestBuilder(state)
	missing := false
	answers := []string{"state-ok"}
	for _, w := range wants {
		answer := w.answered(req.Params.InputResponses)
		if answers = append(answers, answer); answer == "" {
			missing = true
			w.add(b)
		}
	}
	if missing {
		return b.ToolResult(), nil
	}
	return textf("%s", strings.Join(answers, " "))
}

// addDiagnosticTools adds what the suite looks at the stateless core with.
func addDiagnosticTools(p *server.MCPServer) {
	addTool(p, "test_missing_capability", func(ctx context.Context, _ mcp.CallToolRequest) (*result, error) {
		if info := server.RequestProtocolInfoFromContext(ctx); info == nil || info.ClientCapabilities == nil || info.ClientCapabilities.Sampling == nil {
			return nil, mcp.MissingRequiredClientCapabilityError{Capability: "sampling"}
		}
		return textf("the client can sample")
	})
	addTool(p, "test_streaming_elicitation", func(_ context.Context, req mcp.CallToolRequest) (*result, error) {
		return inOneRound(req, []want{wantName})
	})
	addTool(p, "test_logging_tool", func(ctx context.Context, _ mcp.CallToolRequest) (*result, error) {
		_ = p.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "test", "only for who asked for it"))
		return textf("logged")
	})
	addTool(p, "test_trigger_tool_change", func(context.Context, mcp.CallToolRequest) (*result, error) {
		addTool(p, "test_came_later", func(context.Context, mcp.CallToolRequest) (*result, error) { return textf("here") })
		return textf("changed")
	})
	addTool(p, "test_trigger_prompt_change", func(context.Context, mcp.CallToolRequest) (*result, error) {
		addPrompt(p, "test_came_later", func(mcp.GetPromptRequest) []mcp.PromptMessage { return nil })
		return textf("changed")
	})
}

func addResources(p *server.MCPServer) {
	p.AddResource(mcp.NewResource("test://static-text", "static-text", mcp.WithMIMEType("text/plain")), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."}}, nil
	})
	p.AddResource(mcp.NewResource("test://static-binary", "static-binary", mcp.WithMIMEType("image/png")), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: pngPixel}}, nil
	})
	p.AddResource(mcp.NewResource("test://watched-resource", "watched"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "test://watched-resource", Text: "watched"}}, nil
	})
	p.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template", mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			return []mcp.ResourceContents{mcp.TextResourceContents{
				URI: req.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id),
			}}, nil
		})
}

func addPrompt(p *server.MCPServer, name string, messages func(mcp.GetPromptRequest) []mcp.PromptMessage, opts ...mcp.PromptOption) {
	p.AddPrompt(mcp.NewPrompt(name, append([]mcp.PromptOption{mcp.WithPromptDescription("For the conformance suite.")}, opts...)...),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: messages(req)}, nil
		})
}

func addPrompts(p *server.MCPServer) {
	says := func(c ...mcp.Content) []mcp.PromptMessage {
		var out []mcp.PromptMessage
		for _, one := range c {
			out = append(out, mcp.PromptMessage{Role: mcp.RoleUser, Content: one})
		}
		return out
	}
	addPrompt(p, "test_simple_prompt", func(mcp.GetPromptRequest) []mcp.PromptMessage {
		return says(mcp.NewTextContent("This is a simple prompt for testing."))
	})
	addPrompt(p, "test_prompt_with_arguments", func(req mcp.GetPromptRequest) []mcp.PromptMessage {
		return says(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", req.Params.Arguments["arg1"], req.Params.Arguments["arg2"])))
	}, mcp.WithArgument("arg1", mcp.RequiredArgument()), mcp.WithArgument("arg2", mcp.RequiredArgument()))
	addPrompt(p, "test_prompt_with_embedded_resource", func(req mcp.GetPromptRequest) []mcp.PromptMessage {
		return says(mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: req.Params.Arguments["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}),
			mcp.NewTextContent("Please process the embedded resource above."))
	}, mcp.WithArgument("resourceUri", mcp.RequiredArgument()))
	addPrompt(p, "test_prompt_with_image", func(mcp.GetPromptRequest) []mcp.PromptMessage {
		return says(mcp.NewImageContent(pngPixel, "image/png"), mcp.NewTextContent("Please analyze the image above."))
	})
	p.AddPrompt(mcp.NewPrompt("test_input_required_result_prompt", mcp.WithPromptDescription("For the conformance suite.")), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		w := want{"user_context", "elicit", "What context should the prompt use?", "context"}
		if answer := w.answered(req.Params.InputResponses); answer != "" {
			return &mcp.GetPromptResult{Messages: says(mcp.NewTextContent("Use " + answer))}, nil
		}
		b := server.NewInputRequestBuilder("")
		w.add(b)
		return b.PromptResult(), nil
	})
}
