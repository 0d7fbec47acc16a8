// Package sdkcheck_test tests the fake servers of modeltest with the vendors' own
// clients. It is a separate module: users of the framework do not need the
// clients.
package sdkcheck_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

const key = "sk-test-1234567890"

// rich is an answer with everything that the APIs support.
func rich() modeltest.Turn {
	return modeltest.Turn{
		Reasoning: []string{"Let me ", "think."}, Signature: "c2lnbmF0dXJl",
		Text: []string{"Read", "ing é🙂 <b>."},
		Calls: []modeltest.Call{
			{ID: "call_1", Name: "read_file", Args: []string{`{"path"`, `:"a.go"}`}},
			{ID: "call_2", Name: "read_file", Args: []string{`{"path":`, `"b.go"}`}},
		},
		Usage: modeltest.Usage{Prompt: 100, Cached: 60, CacheWrite: 10, Completion: 30, Reasoning: 12},
	}
}

const (
	richText      = "Reading é🙂 <b>."
	richReasoning = "Let me think."
)

// serve starts a server that answers with the turns.
func serve(t *testing.T, api modeltest.API, turns ...modeltest.Turn) (*modeltest.Server, string, *http.Client) {
	t.Helper()
	s := modeltest.New(api, turns...)
	s.Key = key
	url := s.Serve(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return s, url, &http.Client{Transport: transport}
}

// same reports a difference.
func same[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// checkParsed checks that the second request of a session contains the first
// answer and the results of its calls.
func checkParsed(t *testing.T, s *modeltest.Server, signed bool) {
	t.Helper()
	requests := s.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	parsed := requests[1].Parsed
	calls, results := parsed.Parts(model.RoleAssistant).ToolCalls(), parsed.Results()
	if len(calls) != 2 || len(results) != 2 {
		t.Fatalf("it says %+v", parsed)
	}
	same(t, "system prompt", parsed.System, "Be brief.")
	same(t, "text of the model", parsed.Parts(model.RoleAssistant).Text(), richText)
	same(t, "first result", results[0].CallID, calls[0].ID)
	same(t, "second result", results[1].CallID, calls[1].ID)
	if !strings.Contains(results[1].Content.Text(), "contents of b") {
		t.Errorf("second result %+v", results[1])
	}
	same(t, "tools", len(parsed.Tools), 1)
	back := false
	for _, p := range parsed.Parts(model.RoleAssistant) {
		switch p := p.(type) {
		case model.Reasoning:
			back = back || p.Signature == rich().Signature
		case model.Opaque:
			back = back || strings.Contains(string(p.Raw), rich().Signature)
		}
	}
	same(t, "the signature goes back", back, signed)
}
