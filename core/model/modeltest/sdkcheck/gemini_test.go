package sdkcheck_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// token adds the bearer token for Vertex AI.
type token struct{ http.RoundTripper }

func (t token) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+key)
	return t.RoundTripper.RoundTrip(r)
}

func google(t *testing.T, api modeltest.API, turns ...modeltest.Turn) (*modeltest.Server, *genai.Client) {
	t.Helper()
	s, url, client := serve(t, api, turns...)
	url = url[:strings.LastIndex(url, "/")] // the SDK adds the version
	cfg := &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: key, HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: url}}
	if api == modeltest.Vertex {
		client.Transport = token{client.Transport}
		cfg.Backend, cfg.APIKey, cfg.Project, cfg.Location = genai.BackendVertexAI, "", "p", "europe-west4"
	}
	c, err := genai.NewClient(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

const geminiModel = "gemini-3-test"

func geminiConfig() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser),
		ThinkingConfig:    &genai.ThinkingConfig{IncludeThoughts: true, ThinkingLevel: genai.ThinkingLevelHigh},
		Tools:             []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "read_file", ParametersJsonSchema: map[string]any{"type": "object"}}}}},
	}
}

// checkContent checks the parts of an answer, its end and its counts.
func checkContent(t *testing.T, parts []*genai.Part, last *genai.GenerateContentResponse) {
	t.Helper()
	var text, thoughts string
	var calls []*genai.Part
	for _, p := range parts {
		switch {
		case p.FunctionCall != nil:
			calls = append(calls, p)
		case p.Thought:
			thoughts += p.Text
		default:
			text += p.Text
		}
	}
	same(t, "text", text, richText)
	same(t, "thoughts", thoughts, richReasoning)
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	same(t, "signature", base64.StdEncoding.EncodeToString(calls[0].ThoughtSignature), rich().Signature)
	same(t, "signature of the second call", len(calls[1].ThoughtSignature), 0)
	same(t, "call id", calls[1].FunctionCall.ID, "call_2")
	same(t, "argument", calls[1].FunctionCall.Args["path"], any("b.go"))
	same(t, "finish reason", last.Candidates[0].FinishReason, genai.FinishReasonStop)
	u := last.UsageMetadata
	same(t, "prompt", u.PromptTokenCount, 100)
	same(t, "cached", u.CachedContentTokenCount, 60)
	same(t, "candidates", u.CandidatesTokenCount, 18)
	same(t, "thoughts", u.ThoughtsTokenCount, 12)
	same(t, "total", u.TotalTokenCount, 130)
	same(t, "model", last.ModelVersion, geminiModel)
	if last.ResponseID == "" {
		t.Error("no response id")
	}
}

func TestGemini(t *testing.T) {
	for _, api := range []modeltest.API{modeltest.Gemini, modeltest.Vertex} {
		t.Run(api.String(), func(t *testing.T) {
			s, client := google(t, api, rich(), rich())
			contents := []*genai.Content{genai.NewContentFromText("hello", genai.RoleUser)}
			reply := &genai.Content{Role: genai.RoleModel}
			var last *genai.GenerateContentResponse
			for r, err := range client.Models.GenerateContentStream(t.Context(), geminiModel, contents, geminiConfig()) {
				if err != nil {
					t.Fatal(err)
				}
				reply.Parts = append(reply.Parts, r.Candidates[0].Content.Parts...)
				last = r
			}
			checkContent(t, reply.Parts, last)
			reply.Parts = reply.Parts[:len(reply.Parts)-1] // the SDK omits the empty text, which leaves an empty part
			results := &genai.Content{Role: genai.RoleUser}
			for i, name := range []string{"a", "b"} {
				p := genai.NewPartFromFunctionResponse("read_file", map[string]any{"output": "contents of " + name})
				p.FunctionResponse.ID = fmt.Sprint("call_", i+1)
				results.Parts = append(results.Parts, p)
			}
			r, err := client.Models.GenerateContent(t.Context(), geminiModel, append(contents, reply, results), geminiConfig())
			if err != nil {
				t.Fatal(err)
			}
			checkContent(t, r.Candidates[0].Content.Parts, r)
			checkParsed(t, s, true)
			same(t, "effort", s.Requests()[1].Parsed.Effort, "high")
		})
	}
}

func TestGeminiBlocked(t *testing.T) {
	_, client := google(t, modeltest.Gemini, modeltest.Turn{Blocked: "PROHIBITED_CONTENT"}, modeltest.Turn{Text: []string{"x"}, Stop: model.StopContentFilter})
	r, err := client.Models.GenerateContent(t.Context(), geminiModel, genai.Text("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "block reason", r.PromptFeedback.BlockReason, genai.BlockedReasonProhibitedContent)
	r, err = client.Models.GenerateContent(t.Context(), geminiModel, genai.Text("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "finish reason", r.Candidates[0].FinishReason, genai.FinishReasonSafety)
}

func TestGeminiModels(t *testing.T) {
	for _, api := range []modeltest.API{modeltest.Gemini, modeltest.Vertex} {
		s, client := google(t, api)
		for i := range 70 {
			s.Models = append(s.Models, fmt.Sprint("gemini-", i))
		}
		n := 0
		for m, err := range client.Models.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(m.Name, "models/"+s.Models[n]) {
				t.Fatalf("model %d is %q", n, m.Name)
			}
			n++
		}
		same(t, "models", n, 70)
	}
}

func TestGeminiErrors(t *testing.T) {
	limited := modeltest.RateLimited("")
	limited.Fault.RetryAfter = 34500 * time.Millisecond
	for _, test := range []struct {
		turn   modeltest.Turn
		code   int
		status string
	}{
		{modeltest.Unauthorized("x"), 400, "INVALID_ARGUMENT"},
		{modeltest.NoSuchModel("x"), 404, "NOT_FOUND"},
		{modeltest.ContextLength(), 400, "INVALID_ARGUMENT"},
		{limited, 429, "RESOURCE_EXHAUSTED"},
		{modeltest.Overloaded(), 503, "UNAVAILABLE"},
		{modeltest.ServerError(500), 500, "INTERNAL"},
	} {
		_, client := google(t, modeltest.Gemini, test.turn)
		_, err := client.Models.GenerateContent(t.Context(), geminiModel, genai.Text("x"), nil)
		var e genai.APIError
		if !errors.As(err, &e) {
			t.Fatalf("error %v", err)
		}
		same(t, "code", e.Code, test.code)
		same(t, "status", e.Status, test.status)
		if e.Status == "RESOURCE_EXHAUSTED" && (len(e.Details) != 1 || e.Details[0]["retryDelay"] != "34.5s") {
			t.Errorf("details %v", e.Details)
		}
	}
}

func TestGeminiErrorInStream(t *testing.T) {
	frame := modeltest.Gemini.ErrorFrame(*modeltest.Overloaded().Fault)
	_, client := google(t, modeltest.Gemini, modeltest.Turn{Text: []string{"a", "b"}, Edits: []modeltest.Edit{modeltest.Insert(1, frame)}})
	var last error
	for _, err := range client.Models.GenerateContentStream(t.Context(), geminiModel, genai.Text("x"), nil) {
		last = err
	}
	var e genai.APIError
	if !errors.As(last, &e) || e.Code != 503 {
		t.Errorf("error %v", last)
	}
}

// TestGeminiRefusals sends requests that the service rejects.
func TestGeminiRefusals(t *testing.T) {
	call := func(signature string) *genai.Content {
		return &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "read_file"}, ThoughtSignature: []byte(signature)}}}
	}
	result := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{genai.NewPartFromFunctionResponse("read_file", map[string]any{"output": "x"})}}
	hello := genai.NewContentFromText("hello", genai.RoleUser)
	for name, test := range map[string]struct {
		model    string
		contents []*genai.Content
		want     string
	}{
		"no signature":       {geminiModel, []*genai.Content{hello, call(""), result}, "thought_signature"},
		"a forged one":       {geminiModel, []*genai.Content{hello, call("forged"), result}, "Corrupted"},
		"no result":          {geminiModel, []*genai.Content{hello, call("x")}, "function response parts"},
		"a result alone":     {geminiModel, []*genai.Content{hello, result}, "function response turn"},
		"a role":             {geminiModel, []*genai.Content{{Role: "system", Parts: hello.Parts}}, "valid role"},
		"a level of 2.5":     {"gemini-2.5-flash", []*genai.Content{hello}, "level"},
		"calls at the start": {geminiModel, []*genai.Content{call("x"), result}, "function call turn"},
	} {
		_, client := google(t, modeltest.Gemini, modeltest.Turn{})
		_, err := client.Models.GenerateContent(t.Context(), test.model, test.contents, geminiConfig())
		var e genai.APIError
		if !errors.As(err, &e) || e.Code != 400 || !strings.Contains(e.Message, test.want) {
			t.Errorf("%s: %v, want a word on %q", name, err, test.want)
		}
	}
}
