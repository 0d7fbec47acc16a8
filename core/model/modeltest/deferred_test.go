package modeltest_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// deferring are the services that load tools within the conversation.
var deferring = []struct {
	api  modeltest.API
	name string
	open func(wire.Config) (model.Provider, error)
}{
	{modeltest.Messages, "claude-sonnet-4-5", func(c wire.Config) (model.Provider, error) {
		return anthropic.New(anthropic.Config{Config: c})
	}},
	{modeltest.Responses, "gpt-5.4", func(c wire.Config) (model.Provider, error) { return openai.New(openai.Config{Config: c}) }},
}

// TestDeferredTools lets a model search, and checks the requests before and after.
func TestDeferredTools(t *testing.T) {
	t.Parallel()
	for _, d := range deferring {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			server := modeltest.New(d.api,
				modeltest.Turn{Calls: []modeltest.Call{{ID: "call_1", Name: model.ToolSearch, Args: []string{`{"query":"weather"}`}}}},
				modeltest.Turn{Calls: []modeltest.Call{{ID: "call_2", Name: "forecast", Args: []string{`{"city":"Oslo"}`}}}},
				modeltest.Turn{Text: []string{"rain"}})
			p, err := d.open(wire.Config{BaseURL: server.Serve(t), APIKey: "k", Model: d.name})
			if err != nil {
				t.Fatal(err)
			}
			if !model.DefersTools(model.WithRetry(p, model.DefaultRetry), "") {
				t.Fatal("the model does not defer tools")
			}
			object := json.RawMessage(`{"type":"object"}`)
			req := &model.Request{
				Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Will it rain?")}},
				Tools: []model.ToolDef{
					{Name: "read", Schema: object},
					{Name: model.ToolSearch, Description: "Finds tools.", Schema: object},
					{Name: "forecast", Description: "The weather.", Schema: object, Deferred: true},
					{Name: "other", Schema: object, Deferred: true},
				},
			}
			found := []model.Parts{
				{model.ToolReference{Name: "forecast"}, model.ToolReference{Name: "gone"}},
				model.TextParts("rain"),
			}
			for i := 0; ; i++ {
				resp, err := model.Complete(t.Context(), p, req)
				if err != nil {
					t.Fatal(err)
				}
				calls := resp.Parts.ToolCalls()
				if len(calls) == 0 {
					break
				}
				if want := []string{`{"query":"weather"}`, `{"city":"Oslo"}`}[i]; calls[0].Args != want || resp.Stop != model.StopToolCalls {
					t.Errorf("call %+v, stop %s; want arguments %s", calls[0], resp.Stop, want)
				}
				req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: resp.Parts},
					model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: calls[0].ID, Name: calls[0].Name, Content: found[i]}}})
			}
			checkDeferred(t, server.Requests())
		})
	}
}

var cacheMarks = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

func checkDeferred(t *testing.T, requests []*modeltest.Request) {
	t.Helper()
	if len(requests) != 3 {
		t.Fatalf("%d requests, want 3", len(requests))
	}
	var bodies [][]byte
	for _, r := range requests {
		bodies = append(bodies, bytes.TrimRight(cacheMarks.ReplaceAll(r.Body, nil), "]}"))
	}
	for i, b := range bodies[1:] {
		if !bytes.HasPrefix(b, bodies[i]) {
			t.Errorf("request %d does not begin with the one before:\n%s\n%s", i+1, bodies[i], b)
		}
	}
	r := requests[1].Parsed.Results()[0]
	if !slices.Contains(r.Content, model.Part(model.ToolReference{Name: "forecast"})) || slices.Contains(r.Content, model.Part(model.ToolReference{Name: "gone"})) {
		t.Errorf("the search's result is %+v, want a reference to forecast alone", r.Content)
	}
	for _, d := range requests[2].Parsed.Tools {
		if known := d.Name == "read" || d.Name == model.ToolSearch; known == d.Deferred {
			t.Errorf("tool %q is deferred: %v", d.Name, d.Deferred)
		}
	}
}

func TestDefersTools(t *testing.T) {
	t.Parallel()
	key := wire.Config{APIKey: "k", Model: "none"}
	claude, err := anthropic.New(anthropic.Config{Config: key})
	if err != nil {
		t.Fatal(err)
	}
	gpt, err := openai.New(openai.Config{Config: key})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"claude-sonnet-4-5": true, "claude-sonnet-4-5-20250929": true, "claude-opus-4-6": true, "claude-mythos-5": true, "eu.anthropic.claude-haiku-4-5-20251001-v1:0": true,
		"claude-sonnet-4-20250514": false, "claude-opus-4-1": false, "claude-3-7-sonnet-latest": false, "claude-3-5-haiku-20241022": false, "": false, "glm-5": false,
	} {
		if got := model.DefersTools(claude, name); got != want {
			t.Errorf("claude: DefersTools(%q) = %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"gpt-5.4": true, "gpt-5.4-mini": true, "gpt-5.12": true, "gpt-6": true,
		"gpt-5": false, "gpt-5.3-codex": false, "gpt-4.1": false, "gpt-5-mini-2025-08-07": false, "o4-mini": false, "": false,
	} {
		if got := model.DefersTools(gpt, name); got != want {
			t.Errorf("gpt: DefersTools(%q) = %v, want %v", name, got, want)
		}
	}
	if !model.DefersTools(model.WithFallback(claude), "claude-opus-4-6") || model.DefersTools(model.WithFallback(claude, gpt), "claude-opus-4-6") {
		t.Error("a fallback defers tools if all do, and only then")
	}
}
