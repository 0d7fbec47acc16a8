package gemini

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

// The answer has the form of https://ai.google.dev/gemini-api/docs/google-search.
func TestSearchWeb(t *testing.T) {
	var asked map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.RequestURI() != "/models/gemini-2.5-flash:generateContent" {
			t.Errorf("%s: %v", r.URL, err)
		}
		_, _ = w.Write([]byte(`{"modelVersion":"gemini-2.5-flash-001","candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"High at noon."}]},
			"groundingMetadata":{"webSearchQueries":["tides"],"groundingChunks":[{"web":{"uri":"https://redirect.example/1","title":"a.example"}},{"web":{"uri":"https://redirect.example/2","title":"b.example"}}],
			"groundingSupports":[{"segment":{"startIndex":0,"endIndex":4,"text":"High"},"groundingChunkIndices":[1,7]}]}}],
			"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":90,"candidatesTokenCount":8,"thoughtsTokenCount":2}}`))
	}))
	t.Cleanup(server.Close)
	p, err := New(Config{Config: wire.Config{BaseURL: server.URL, APIKey: "key", Model: "models/gemini-2.5-flash"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.SearchWeb(t.Context(), p, model.WebQuery{Text: "tides", Domains: []string{"b.example"}})
	want := &model.WebAnswer{
		Text: "High at noon.", Model: "gemini-2.5-flash-001", Usage: model.Usage{Input: 100, Output: 10, Reasoning: 2},
		Sources: []model.WebSource{{Title: "a.example", URL: "https://redirect.example/1"}, {Title: "b.example", URL: "https://redirect.example/2", Text: "High"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if text, _ := json.Marshal(asked); !strings.Contains(string(text), `"tools":[{"googleSearch":{}}]`) || !strings.Contains(string(text), "tides site:b.example") {
		t.Errorf("asked %s", text)
	}
}
