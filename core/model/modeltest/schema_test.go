package modeltest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// schemaServices are the services to which tools are sent.
var schemaServices = []struct {
	name, model string
	api         modeltest.API
	open        func(wire.Config) (model.Provider, error)
}{
	{"responses", "gpt-5", modeltest.Responses, func(c wire.Config) (model.Provider, error) { return openai.New(openai.Config{Config: c}) }},
	{"responses with search", "gpt-5.4", modeltest.Responses, func(c wire.Config) (model.Provider, error) { return openai.New(openai.Config{Config: c}) }},
	{"chat", "gpt-4.1", modeltest.ChatCompletions, langchain.OpenAI},
	{"local", "llama3.3", modeltest.ChatCompletions, langchain.Local},
	{"messages", "claude-sonnet-4-5", modeltest.Messages, func(c wire.Config) (model.Provider, error) { return anthropic.New(anthropic.Config{Config: c}) }},
	{"gemini", "gemini-2.5-pro", modeltest.Gemini, func(c wire.Config) (model.Provider, error) { return gemini.New(gemini.Config{Config: c}) }},
}

func schemaCorpus(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("../../schema/adapt/testdata/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	values := make([]string, 3000)
	for i := range values {
		values[i] = fmt.Sprintf("value-%d", i)
	}
	long, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	all["huge-enum"] = json.RawMessage(`{"type":"object","properties":{"v":{"type":"string","enum":` + string(long) + `}}}`)
	all["deep"] = json.RawMessage(strings.Repeat(`{"type":"object","properties":{"a":`, 120) + `{"type":"string"}` + strings.Repeat(`}}`, 120))
	return all
}

// TestEverySchemaIsAccepted sends every schema of the corpus as a tool, each alone
// so that a rejection names it, and all together. The fakes reject what the
// services reject.
func TestEverySchemaIsAccepted(t *testing.T) {
	all := schemaCorpus(t)
	names := slices.Sorted(maps.Keys(all))
	for _, s := range schemaServices {
		t.Run(s.name, func(t *testing.T) {
			server := modeltest.NewFunc(s.api, func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"ok"}} })
			p, err := s.open(wire.Config{BaseURL: server.Serve(t), APIKey: "k", Model: s.model})
			if err != nil {
				t.Fatal(err)
			}
			var tools []model.ToolDef
			for _, name := range names {
				def := model.ToolDef{Name: "t_" + strings.ReplaceAll(name, "-", "_"), Description: name, Schema: all[name]}
				tools = append(tools, def)
				if err := sendTools(t, p, def); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := sendTools(t, p, tools...); err != nil {
				t.Errorf("all: %v", err)
			}
			requests := server.Requests()
			if got := len(requests[len(requests)-1].Parsed.Tools); got != len(names) {
				t.Errorf("%d tools at the service, want %d", got, len(names))
			}
		})
	}
}

func sendTools(t *testing.T, p model.Provider, tools ...model.ToolDef) error {
	t.Helper()
	_, err := model.Complete(t.Context(), p, &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("hi")}}, Tools: tools})
	return err
}

// TestFakesRejectSchemas: most of the corpus would be rejected as it is, with the
// words of the services.
func TestFakesRejectSchemas(t *testing.T) {
	all := schemaCorpus(t)
	for _, tt := range []struct {
		api         modeltest.API
		model, name string
		want        string
	}{
		{modeltest.Responses, "gpt-5", "root-required-alternatives", "at the top level"},
		{modeltest.Responses, "gpt-5", "array-without-items", "array schema missing items"},
		{modeltest.Responses, "gpt-5", "fastmcp-context-only", "object schema missing properties"},
		{modeltest.Responses, "gpt-5", "unresolved-ref", "not found in the schema"},
		{modeltest.ChatCompletions, "gpt-4.1", "zod4-email", "not a supported regex"},
		{modeltest.ChatCompletions, "llama3.3", "zod4-recursive", "cannot find field"},
		{modeltest.Messages, "claude-sonnet-4-5", "zod4-discriminated-root", "at the top level"},
		{modeltest.Messages, "claude-sonnet-4-5", "draft04-exclusive", "is not of type 'number'"},
		{modeltest.Messages, "claude-sonnet-4-5", "openapi-brackets", "Property keys should match pattern"},
		{modeltest.Gemini, "gemini-2.5-pro", "zod3", "cannot find field"},
		{modeltest.Gemini, "gemini-2.5-pro", "enum-numbers", "TYPE_STRING"},
		{modeltest.Gemini, "gemini-2.5-pro", "required-undefined", "property is not defined"},
	} {
		if err := modeltest.CheckSchema(tt.api, tt.model, all[tt.name]); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, %s: %v, want %q", tt.api, tt.name, err, tt.want)
		}
	}
	if err := modeltest.CheckSchema(modeltest.Responses, "gpt-5", all["plain"]); err != nil {
		t.Error(err)
	}
}
