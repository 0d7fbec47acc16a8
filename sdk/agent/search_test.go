package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// remote is one of many tools of a service.
type remote struct {
	name, text string
	access     []core.Access
}

func (r *remote) Definition() core.ToolDefinition {
	return core.ToolDefinition{
		Name: r.name, Description: r.text,
		Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}
}

func (r *remote) Access(context.Context, *core.Call) ([]core.Access, error) { return r.access, nil }

func (r *remote) Run(_ context.Context, call *core.Call) (core.Result, error) {
	return core.TextResult(r.name + " ran with " + string(call.Args)), nil
}

// service is a toolset with many tools.
type service []core.Tool

func newService() service {
	s := service{
		&remote{name: "forecast", text: "The weather of the next days in a city."},
		&remote{name: "wipe", text: "Erases the archive of a city.", access: []core.Access{{Scope: core.ScopePlugin, Resource: "service/wipe"}}},
	}
	for i := range 300 {
		s = append(s, &remote{name: fmt.Sprintf("gauge_%d", i), text: fmt.Sprintf("Reads water gauge number %d.", i)})
	}
	return s
}

func (service) Name() string                                 { return "service" }
func (s service) Tools(context.Context) ([]core.Tool, error) { return s, nil }
func (service) Changed() <-chan struct{}                     { return nil }
func (service) Close() error                                 { return nil }

// searchedBy are the kinds of providers, and the tool with which each model calls
// found tools.
var searchedBy = []struct {
	api    modeltest.API
	model  string
	native bool
	open   func(wire.Config) (model.Provider, error)
}{
	{modeltest.ChatCompletions, "some-model", false, langchain.Local},
	{modeltest.Gemini, "gemini-2.5-flash", false, func(c wire.Config) (model.Provider, error) { return gemini.New(gemini.Config{Config: c}) }},
	{modeltest.Messages, "claude-sonnet-4-5", true, func(c wire.Config) (model.Provider, error) { return anthropic.New(anthropic.Config{Config: c}) }},
	{modeltest.Messages, "claude-opus-4-1", false, func(c wire.Config) (model.Provider, error) { return anthropic.New(anthropic.Config{Config: c}) }},
	{modeltest.Responses, "gpt-5.4", true, func(c wire.Config) (model.Provider, error) { return openai.New(openai.Config{Config: c}) }},
	{modeltest.Responses, "gpt-5", false, func(c wire.Config) (model.Provider, error) { return openai.New(openai.Config{Config: c}) }},
}

// TestSearchKeepsThePrefix makes a model of each kind search for a tool, call it,
// and call one that the policy denies. Each request repeats the last one byte for
// byte, and the tools in the prompt do not change.
func TestSearchKeepsThePrefix(t *testing.T) {
	t.Parallel()
	for _, kind := range searchedBy {
		t.Run(kind.model, func(t *testing.T) {
			t.Parallel()
			call := func(name, args string) modeltest.Turn {
				if !kind.native && name != model.ToolSearch {
					name, args = "call_tool", fmt.Sprintf(`{"name":%q,"args":%s}`, name, args)
				}
				return modeltest.Turn{Calls: []modeltest.Call{{ID: "call_" + fmt.Sprint(len(name), len(args)), Name: name, Args: []string{args}}}}
			}
			server := modeltest.New(kind.api,
				call(model.ToolSearch, `{"query":"weather in a city"}`), call("forecast", `{"city":"Oslo"}`), call("forecast", `{"town":"Oslo"}`),
				call("wipe", `{"city":"Oslo"}`), modeltest.Turn{Text: []string{"rain"}}, modeltest.Turn{Text: []string{"more"}})
			p, err := kind.open(wire.Config{BaseURL: server.Serve(t), APIKey: "k", Model: kind.model})
			if err != nil {
				t.Fatal(err)
			}
			a, _ := open(t, func(o *agent.Options) {
				o.Toolsets, o.Permissions = []core.Toolset{newService()}, permissions.Options{}
			}, nil)
			s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: p})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			out, err := s.Submit(t.Context(), core.TextInput("Will it rain in Oslo?"))
			if err != nil || out.Text != "rain" {
				t.Fatalf("%+v, %v", out, err)
			}
			if len(out.Denied) != 1 || out.Denied[0].Tool != "wipe" {
				t.Errorf("denied %+v, want wipe", out.Denied)
			}
			if _, err := s.Submit(t.Context(), core.TextInput("And then?")); err != nil {
				t.Fatal(err)
			}
			checkPrefixes(t, server.Requests())
			checkPrompt(t, server.Requests(), kind.native)
			checkStory(t, s)
		})
	}
}

// moving is what must change from request to request: the markers at the
// end of the cached prefix.
var moving = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

func checkPrefixes(t *testing.T, requests []*modeltest.Request) {
	t.Helper()
	if len(requests) != 6 {
		t.Fatalf("%d requests, want 6", len(requests))
	}
	var before []byte
	for i, r := range requests {
		body := moving.ReplaceAll(r.Body, nil)
		if !bytes.HasPrefix(body, before) {
			t.Errorf("request %d does not begin as the one before:\n%s\n%s", i, before, body)
		}
		before = bytes.TrimRight(body, "]}")
	}
}

func checkPrompt(t *testing.T, requests []*modeltest.Request, native bool) {
	t.Helper()
	var names, deferred []string
	for _, d := range requests[0].Parsed.Tools {
		if d.Deferred {
			deferred = append(deferred, d.Name)
		} else {
			names = append(names, d.Name)
		}
	}
	if !slices.Contains(names, model.ToolSearch) || slices.Contains(names, "call_tool") == native || slices.Contains(names, "forecast") {
		t.Errorf("the prompt has the tools %q", names)
	}
	if len(deferred) > 0 && !native {
		t.Errorf("%d tools are deferred by a service that cannot", len(deferred))
	}
	found := requests[1].Parsed.Results()[0]
	if native != slices.Contains(found.Content, model.Part(model.ToolReference{Name: "forecast"})) || native == strings.Contains(found.Content.Text(), "## forecast") {
		t.Errorf("the search gave %+v", found.Content)
	}
}

// checkStory checks in the session log which tools ran.
func checkStory(t *testing.T, s *agent.Session) {
	t.Helper()
	_ = s.Close()
	var story []string
	for e, err := range s.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.ToolUse:
			story = append(story, b.Source+"/"+b.Name)
		case event.ToolResult:
			story = append(story, b.Code)
		}
	}
	want := []string{
		"builtin/tool_search", "", "service/forecast", "", "service/forecast", string(core.CodeValidation), "service/wipe", string(core.CodePermission),
	}
	if !slices.Equal(story, want) {
		t.Errorf("the record says %q, want %q", story, want)
	}
}

// TestSearchFollowsTheModel changes the model of a session.
func TestSearchFollowsTheModel(t *testing.T) {
	t.Parallel()
	chat := modeltest.NewChat(modeltest.Turn{Text: []string{"a"}})
	claude := modeltest.New(modeltest.Messages, modeltest.Turn{Text: []string{"b"}})
	local, err := langchain.Local(wire.Config{BaseURL: chat.Serve(t), Model: "some-model"})
	if err != nil {
		t.Fatal(err)
	}
	native, err := anthropic.New(anthropic.Config{Config: wire.Config{BaseURL: claude.Serve(t), APIKey: "k", Model: "claude-sonnet-4-5"}})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := open(t, func(o *agent.Options) { o.Toolsets = []core.Toolset{newService()} }, nil)
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: local})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Submit(t.Context(), core.TextInput("one")); err != nil {
		t.Fatal(err)
	}
	s.SetModel(native, "")
	if _, err := s.Submit(t.Context(), core.TextInput("two")); err != nil {
		t.Fatal(err)
	}
	if tools := chat.Requests()[0].Parsed.Tools; len(tools) > 20 {
		t.Errorf("the first model has %d tools in its prompt", len(tools))
	}
	if tools := claude.Requests()[0].Parsed.Tools; len(tools) < 300 {
		t.Errorf("the second model has %d tools, deferred ones included", len(tools))
	}
}
