package sdkcheck_test

import (
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// TestToolSearchOfResponses searches for tools with OpenAI's client.
func TestToolSearchOfResponses(t *testing.T) {
	s, client := openAI(t, modeltest.Responses,
		modeltest.Turn{Calls: []modeltest.Call{{ID: "call_1", Name: model.ToolSearch, Args: []string{`{"query":"weather"}`}}}}, modeltest.Turn{Text: []string{"rain"}})
	schema := map[string]any{"type": "object", "properties": map[string]any{}}
	params := responses.ResponseNewParams{
		Model: "gpt-5.4",
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage("Will it rain?", responses.EasyInputMessageRoleUser),
		}},
		Tools: []responses.ToolUnionParam{{OfToolSearch: &responses.ToolSearchToolParam{
			Execution: "client", Description: openai.String("Finds tools."), Parameters: schema,
		}}},
	}
	stream := client.Responses.NewStreaming(t.Context(), params)
	var call responses.ResponseToolSearchCall
	for stream.Next() {
		if done, ok := stream.Current().AsAny().(responses.ResponseOutputItemDoneEvent); ok {
			call = done.Item.AsToolSearchCall()
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	args, _ := call.Arguments.(map[string]any)
	same(t, "execution", string(call.Execution), "client")
	same(t, "call", call.CallID, "call_1")
	same(t, "query", args["query"], any("weather"))

	found := responses.ResponseToolSearchOutputItemParam{
		CallID: openai.String("call_1"), Execution: "client", Status: "completed",
		Tools: []responses.ResponseToolSearchOutputItemParamToolUnion{{OfFunction: &responses.FunctionToolParam{
			Name: "forecast", Parameters: schema, DeferLoading: openai.Bool(true), Strict: openai.Bool(false),
		}}},
	}
	params.Input.OfInputItemList = append(params.Input.OfInputItemList,
		responses.ResponseInputItemUnionParam{OfToolSearchCall: &responses.ResponseInputItemToolSearchCallParam{
			CallID: openai.String("call_1"), Execution: "client", Arguments: args, Status: "completed",
		}},
		responses.ResponseInputItemUnionParam{OfToolSearchOutput: &found})
	if _, err := client.Responses.New(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	checkFound(t, s)
}

// TestToolReferencesOfMessages refers to a deferred tool with Anthropic's client.
func TestToolReferencesOfMessages(t *testing.T) {
	s, client := claude(t, modeltest.Turn{Text: []string{"rain"}}, modeltest.Turn{Text: []string{"rain"}})
	tool := func(name string, deferred bool) anthropic.ToolUnionParam {
		return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: name, DeferLoading: anthropic.Bool(deferred), InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{}}}}
	}
	params := anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 100,
		Tools:    []anthropic.ToolUnionParam{tool(model.ToolSearch, false), tool("forecast", true)},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Will it rain?"))},
	}
	if _, err := client.Messages.New(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	result := anthropic.ToolResultBlockParam{ToolUseID: "call_1", Content: []anthropic.ToolResultBlockParamContentUnion{
		{OfToolReference: &anthropic.ToolReferenceBlockParam{ToolName: "forecast"}},
	}}
	params.Messages = append(params.Messages,
		anthropic.NewAssistantMessage(anthropic.NewToolUseBlock("call_1", map[string]any{"query": "weather"}, model.ToolSearch)),
		anthropic.NewUserMessage(anthropic.ContentBlockParamUnion{OfToolResult: &result}))
	if _, err := client.Messages.New(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	checkFound(t, s)
}

// checkFound checks that the second request contains what was found.
func checkFound(t *testing.T, s *modeltest.Server) {
	t.Helper()
	requests := s.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	results := requests[1].Parsed.Results()
	if len(results) != 1 || len(results[0].Content) != 1 || results[0].Content[0] != model.Part(model.ToolReference{Name: "forecast"}) {
		t.Errorf("results %+v, want a reference to forecast", results)
	}
}
