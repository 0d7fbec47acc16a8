package anthropic

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// The answers have the form of https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool.
func TestSearchWeb(t *testing.T) {
	const found = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","stop_reason":"end_turn","content":[
		{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"tides"}},
		{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[
			{"type":"web_search_result","url":"https://a.example/1","title":"First","encrypted_content":"Eq","page_age":"April 30, 2026"},
			{"type":"web_search_result","url":"https://b.example/2","title":"Tides","encrypted_content":"Eq"}]},
		{"type":"text","text":"High "},
		{"type":"text","text":"at noon.","citations":[{"type":"web_search_result_location","url":"https://b.example/2","title":"Tides","encrypted_index":"Eo","cited_text":"High water is at noon"}]}],
		"usage":{"input_tokens":900,"cache_read_input_tokens":100,"output_tokens":30,"server_tool_use":{"web_search_requests":1}}}`
	const failed = `{"model":"claude-sonnet-4-5","content":[{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}],"usage":{}}`
	var asked map[string]any
	answer := found
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/messages" || r.Header.Get("X-Api-Key") != secret {
			t.Errorf("%s %v: %v", r.URL, r.Header, err)
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	p, err := New(Config{Config: wire.Config{BaseURL: server.URL, APIKey: secret, Model: "claude-sonnet-4-5"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.SearchWeb(t.Context(), p, model.WebQuery{Text: "tides", Domains: []string{"b.example"}})
	want := &model.WebAnswer{
		Text: "High at noon.", Model: "claude-sonnet-4-5-20250929", Usage: model.Usage{Input: 1000, CachedInput: 100, Output: 30},
		Sources: []model.WebSource{{Title: "Tides", URL: "https://b.example/2", Text: "High water is at noon"}, {Title: "First", URL: "https://a.example/1"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	tools, _ := json.Marshal(asked["tools"])
	if string(tools) != `[{"allowed_domains":["b.example"],"max_uses":3,"name":"web_search","type":"web_search_20250305"}]` {
		t.Errorf("asked %v", asked)
	}
	answer = failed
	if _, err := model.SearchWeb(t.Context(), p, model.WebQuery{Text: "tides"}); err == nil || !strings.Contains(err.Error(), "max_uses_exceeded") {
		t.Errorf("a search that failed: %v", err)
	}
	if !model.SearchesWeb(p, "") || model.SearchesWeb(p, "claude-3-5-sonnet") {
		t.Error("the models that search are wrong")
	}
}
