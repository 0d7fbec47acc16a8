package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// The answer has the form of https://developers.openai.com/api/docs/guides/tools-web-search.
func TestSearchWeb(t *testing.T) {
	var asked map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/responses" || r.Header.Get("Authorization") != "Bearer "+secret {
			t.Errorf("%s %v: %v", r.URL, r.Header, err)
		}
		_, _ = w.Write([]byte(`{"id":"resp_1","model":"gpt-5-mini-2025-08-07","output":[
			{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"tides","sources":[{"type":"url","url":"https://a.example/1"},{"type":"url","url":"https://b.example/2"}]}},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"High at noon.","annotations":[{"type":"url_citation","start_index":0,"end_index":4,"url":"https://b.example/2","title":"Tides"}]}]}],
			"usage":{"input_tokens":900,"output_tokens":30,"output_tokens_details":{"reasoning_tokens":12}}}`))
	}))
	t.Cleanup(server.Close)
	p, err := New(Config{Config: wire.Config{BaseURL: server.URL, APIKey: secret, Model: "gpt-5-mini"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.SearchWeb(t.Context(), model.WithRetry(p, model.RetryPolicy{}), model.WebQuery{Text: "tides", Domains: []string{"b.example"}})
	want := &model.WebAnswer{
		Text: "High at noon.", Model: "gpt-5-mini-2025-08-07", Usage: model.Usage{Input: 900, Output: 30, Reasoning: 12},
		Sources: []model.WebSource{{Title: "Tides", URL: "https://b.example/2"}, {URL: "https://a.example/1"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	tools, _ := json.Marshal(asked["tools"])
	if string(tools) != `[{"filters":{"allowed_domains":["b.example"]},"type":"web_search"}]` || asked["input"] != "tides" || asked["store"] != false {
		t.Errorf("asked %v", asked)
	}
	if !model.SearchesWeb(p, "") || model.SearchesWeb(p, "my-deployment") {
		t.Error("the models that search are wrong")
	}
	server.Close()
	var known *model.Error
	if _, err := model.SearchWeb(t.Context(), p, model.WebQuery{Text: "tides"}); !errors.As(err, &known) || known.Code != model.CodeNetwork {
		t.Errorf("a server that is gone: %v", err)
	}
}
