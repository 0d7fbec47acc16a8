package sdkcheck_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

func openAI(t *testing.T, api modeltest.API, turns ...modeltest.Turn) (*modeltest.Server, openai.Client) {
	t.Helper()
	s, url, client := serve(t, api, turns...)
	common := []option.RequestOption{option.WithHTTPClient(client), option.WithMaxRetries(0)}
	if api == modeltest.Azure {
		return s, openai.NewClient(append(common, azure.WithEndpoint(url, "2024-10-21"), azure.WithAPIKey(key), azure.WithUnsafeAllowHTTP())...)
	}
	return s, openai.NewClient(append(common, option.WithBaseURL(url), option.WithAPIKey(key))...)
}

func chatParams(more ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:         "gpt-test",
		Messages:      append([]openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("hello")}, more...),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "read_file", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
		})},
	}
}

func checkCompletion(t *testing.T, c *openai.ChatCompletion) {
	t.Helper()
	if len(c.Choices) != 1 || len(c.Choices[0].Message.ToolCalls) != 2 {
		t.Fatalf("completion %s", c.RawJSON())
	}
	m := c.Choices[0].Message
	same(t, "text", m.Content, richText)
	same(t, "finish reason", c.Choices[0].FinishReason, "tool_calls")
	same(t, "call id", m.ToolCalls[1].ID, "call_2")
	same(t, "arguments", m.ToolCalls[1].Function.Arguments, `{"path":"b.go"}`)
	same(t, "prompt tokens", c.Usage.PromptTokens, 100)
	same(t, "cached tokens", c.Usage.PromptTokensDetails.CachedTokens, 60)
	same(t, "completion tokens", c.Usage.CompletionTokens, 30)
	same(t, "reasoning tokens", c.Usage.CompletionTokensDetails.ReasoningTokens, 12)
}

func TestChat(t *testing.T) {
	for _, api := range []modeltest.API{modeltest.ChatCompletions, modeltest.Ollama, modeltest.Azure} {
		t.Run(api.String(), func(t *testing.T) {
			turn := rich()
			turn.Interleave = true
			s, client := openAI(t, api, turn, rich())
			params := chatParams()
			params.StreamOptions.IncludeUsage = openai.Bool(true)
			stream := client.Chat.Completions.NewStreaming(t.Context(), params)
			var acc openai.ChatCompletionAccumulator
			for stream.Next() {
				if !acc.AddChunk(stream.Current()) {
					t.Fatalf("chunk %s does not belong to the answer", stream.Current().RawJSON())
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			checkCompletion(t, &acc.ChatCompletion)
			m := acc.Choices[0].Message
			c, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
				Model: "gpt-test", Tools: params.Tools,
				Messages: append(params.Messages, m.ToParam(), openai.ToolMessage("contents of a", "call_1"), openai.ToolMessage("contents of b", "call_2")),
			})
			if err != nil {
				t.Fatal(err)
			}
			checkCompletion(t, c)
			checkParsed(t, s, false)
		})
	}
}

func TestChatRefusal(t *testing.T) {
	_, client := openAI(t, modeltest.ChatCompletions, modeltest.Turn{Refusal: []string{"No", "."}})
	stream := client.Chat.Completions.NewStreaming(t.Context(), chatParams())
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	same(t, "refusal", acc.Choices[0].Message.Refusal, "No.")
}

func TestOpenAIModels(t *testing.T) {
	for _, api := range []modeltest.API{modeltest.ChatCompletions, modeltest.Ollama, modeltest.Azure, modeltest.Responses} {
		s, client := openAI(t, api)
		s.Models = []string{"m-1", "m-2"}
		page, err := client.Models.List(t.Context())
		if err != nil || len(page.Data) != 2 || page.Data[1].ID != "m-2" {
			t.Errorf("%v: models %+v, %v", api, page, err)
		}
	}
}

// openAIFaults are errors, and how the SDK must read them.
var openAIFaults = []struct {
	turn   modeltest.Turn
	status int
	code   string
}{
	{modeltest.Unauthorized("sk-x"), 401, "invalid_api_key"},
	{modeltest.NoSuchModel("x"), 404, "model_not_found"},
	{modeltest.ContextLength(), 400, "context_length_exceeded"},
	{modeltest.RateLimited("7"), 429, "rate_limit_exceeded"},
	{modeltest.Overloaded(), 503, "server_error"},
	{modeltest.ServerError(500), 500, ""},
}

func TestOpenAIErrors(t *testing.T) {
	for _, test := range openAIFaults {
		_, client := openAI(t, modeltest.ChatCompletions, test.turn)
		_, err := client.Chat.Completions.New(t.Context(), chatParams())
		checkOpenAIError(t, err, test.status, test.code)
		_, client = openAI(t, modeltest.Responses, test.turn)
		_, err = client.Responses.New(t.Context(), responseParams())
		checkOpenAIError(t, err, test.status, test.code)
	}
	_, client := openAI(t, modeltest.Azure, modeltest.PromptFiltered())
	_, err := client.Chat.Completions.New(t.Context(), chatParams())
	checkOpenAIError(t, err, 400, "content_filter")
}

func checkOpenAIError(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.Message == "" {
		t.Fatalf("error %v", err)
	}
	same(t, "status", e.StatusCode, status)
	same(t, "code", e.Code, code)
}

func TestChatErrorInStream(t *testing.T) {
	frame := modeltest.ErrorFrame("server_error", "server_error", "overloaded")
	_, client := openAI(t, modeltest.ChatCompletions, modeltest.Turn{Text: []string{"a"}, Edits: []modeltest.Edit{modeltest.Insert(2, frame)}})
	stream := client.Chat.Completions.NewStreaming(t.Context(), chatParams())
	for stream.Next() {
	}
	if stream.Err() == nil {
		t.Error("the SDK sees no error")
	}
}

func responseParams(more ...responses.ResponseInputItemUnionParam) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "gpt-5-test", Store: openai.Bool(false), Instructions: openai.String("Be brief."),
		Include:   []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortLow, Summary: shared.ReasoningSummaryAuto},
		Tools:     []responses.ToolUnionParam{responses.ToolParamOfFunction("read_file", map[string]any{"type": "object", "properties": map[string]any{}}, false)},
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: append([]responses.ResponseInputItemUnionParam{
			responses.ResponseInputItemParamOfMessage("hello", responses.EasyInputMessageRoleUser),
		}, more...)},
	}
}

func checkResponse(t *testing.T, r *responses.Response) {
	t.Helper()
	same(t, "status", r.Status, responses.ResponseStatusCompleted)
	same(t, "model", r.Model, "gpt-5-test")
	same(t, "text", r.OutputText(), richText)
	if len(r.Output) != 4 {
		t.Fatalf("output %s", r.RawJSON())
	}
	reasoning := r.Output[0].AsReasoning()
	same(t, "encrypted content", reasoning.EncryptedContent, rich().Signature)
	same(t, "summary", reasoning.Summary[0].Text, richReasoning)
	call := r.Output[3].AsFunctionCall()
	same(t, "call id", call.CallID, "call_2")
	same(t, "arguments", call.Arguments, `{"path":"b.go"}`)
	same(t, "input tokens", r.Usage.InputTokens, 100)
	same(t, "cached tokens", r.Usage.InputTokensDetails.CachedTokens, 60)
	same(t, "output tokens", r.Usage.OutputTokens, 30)
	same(t, "reasoning tokens", r.Usage.OutputTokensDetails.ReasoningTokens, 12)
}

// gathered is the sum of the deltas of a stream.
type gathered struct {
	text, reasoning, refusal string
	args                     map[string]string
	events                   []string
	end                      responses.Response
}

// gather reads a stream and checks the order of its events.
func gather(t *testing.T, client openai.Client) gathered {
	t.Helper()
	g := gathered{args: map[string]string{}}
	stream := client.Responses.NewStreaming(t.Context(), responseParams())
	for n := int64(0); stream.Next(); n++ {
		e := stream.Current()
		same(t, "sequence number of "+e.Type, e.SequenceNumber, n)
		g.events = append(g.events, e.Type)
		switch e := e.AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			g.text += e.Delta
		case responses.ResponseReasoningSummaryTextDeltaEvent:
			g.reasoning += e.Delta
		case responses.ResponseRefusalDeltaEvent:
			g.refusal += e.Delta
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			g.args[e.ItemID] += e.Delta
		case responses.ResponseFunctionCallArgumentsDoneEvent:
			same(t, "arguments of "+e.ItemID, g.args[e.ItemID], e.Arguments)
		case responses.ResponseTextDoneEvent:
			same(t, "text", g.text, e.Text)
		case responses.ResponseCompletedEvent:
			g.end = e.Response
		case responses.ResponseIncompleteEvent:
			g.end = e.Response
		case nil:
			t.Errorf("the SDK does not know the event %q", g.events[len(g.events)-1])
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestResponses(t *testing.T) {
	turn := rich()
	turn.Interleave = true
	s, client := openAI(t, modeltest.Responses, turn, rich())
	g := gather(t, client)
	same(t, "text", g.text, richText)
	same(t, "reasoning", g.reasoning, richReasoning)
	same(t, "calls", len(g.args), 2)
	checkResponse(t, &g.end)
	var back []responses.ResponseInputItemUnionParam
	for _, item := range g.end.Output {
		var p responses.ResponseInputItemUnionParam
		if err := json.Unmarshal([]byte(item.RawJSON()), &p); err != nil {
			t.Fatal(err)
		}
		back = append(back, p)
	}
	for i, name := range []string{"a", "b"} {
		out := responses.ResponseInputItemParamOfFunctionCallOutput("contents of " + name)
		out.OfFunctionCallOutput.CallID = openai.String(fmt.Sprint("call_", i+1))
		back = append(back, out)
	}
	r, err := client.Responses.New(t.Context(), responseParams(back...))
	if err != nil {
		t.Fatal(err)
	}
	checkResponse(t, r)
	checkParsed(t, s, true)
	same(t, "effort", s.Requests()[1].Parsed.Effort, "low")
}

func TestResponsesEndings(t *testing.T) {
	_, client := openAI(t, modeltest.Responses,
		modeltest.Turn{Text: []string{"cut"}, Stop: model.StopMaxTokens},
		modeltest.Turn{Text: []string{"cut"}, Stop: model.StopContentFilter},
		modeltest.Turn{Refusal: []string{"No", "."}},
		modeltest.Turn{},
	)
	same(t, "reason", gather(t, client).end.IncompleteDetails.Reason, "max_output_tokens")
	same(t, "reason", gather(t, client).end.IncompleteDetails.Reason, "content_filter")
	g := gather(t, client)
	same(t, "refusal", g.refusal, "No.")
	same(t, "refusal at the end", g.end.Output[0].Content[0].Refusal, "No.")
	same(t, "status of nothing", gather(t, client).end.Status, responses.ResponseStatusCompleted)
}

func TestResponsesErrorInStream(t *testing.T) {
	frame := modeltest.Responses.ErrorFrame(*modeltest.Overloaded().Fault)
	_, client := openAI(t, modeltest.Responses, modeltest.Turn{Text: []string{"a"}, Edits: []modeltest.Edit{modeltest.Insert(3, frame)}})
	stream := client.Responses.NewStreaming(t.Context(), responseParams())
	seen := ""
	for stream.Next() {
		if e, ok := stream.Current().AsAny().(responses.ResponseErrorEvent); ok {
			seen = e.Code
		}
	}
	if stream.Err() == nil && seen != "server_error" {
		t.Errorf("the SDK sees neither an error nor its event: %q", seen)
	}
}

// TestWrongKey checks that the key is sent where the service expects it.
func TestWrongKey(t *testing.T) {
	s, client := openAI(t, modeltest.Responses)
	s.Key = "another"
	_, err := client.Responses.New(t.Context(), responseParams())
	checkOpenAIError(t, err, http.StatusUnauthorized, "invalid_api_key")
}
