package setup

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model/facts"
)

// TestPresetModels checks that limits of each preset's default model are known,
// and prices where there are any.
func TestPresetModels(t *testing.T) {
	for _, p := range config.Presets() {
		if p.Local {
			continue
		}
		if m := facts.Lookup(p.Name, p.Model); m.Context == 0 || m.Output == 0 || m.Price == nil && p.Name != "nvidia" {
			t.Errorf("%s/%s: %+v", p.Name, p.Model, m)
		}
	}
}

func TestUnknownWindow(t *testing.T) {
	s := settingsFor(t)
	for _, test := range []struct {
		provider, model string
		window          int
		note            string
	}{
		{"local", "nobody-knows", localWindow, "32768 tokens are assumed: run agent models update, or set models.nobody-knows.contextWindow"},
		{"ollama", "nobody-knows", localWindow, "32768"},
		{"openrouter", "nobody/knows", remoteWindow, "128000"},
		{"openai", "gpt-5-mini", 400_000, ""},
	} {
		p, err := s.Profile(test.provider, test.model)
		if err != nil || p.ContextWindow != test.window || !strings.Contains(p.WindowNote, test.note) || test.note == "" && p.WindowNote != "" {
			t.Errorf("%s: %d %q %v", test.model, p.ContextWindow, p.WindowNote, err)
		}
	}
}

const published = `{
	"groq": {"id": "groq", "models": {"new/model": {"id": "new/model", "name": "New", "reasoning": true, "knowledge": "2026-09-30", "modalities": {"input": ["text", "image"]},
		"cost": {"input": 1, "output": 2, "cache_read": 0.1, "tiers": [{"input": 3, "output": 4, "tier": {"type": "context", "size": 200000}}]}, "limit": {"context": 77000, "output": 5000}},
		"bad": {"name": "Bad", "limit": {"context": -1}}, "dear": {"name": "Dear", "cost": {"input": 1e99, "output": 1}}}},
	"google": {"models": {"gemini-9": {"name": "Gemini 9", "limit": {"context": 9000000, "output": 1}}}},
	"nobody": {"models": {"x": {"name": "X"}}}}`

func TestUpdateModels(t *testing.T) {
	answer := published
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://models.example.com/api.json", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	home := filepath.Join(t.TempDir(), "new")
	at := func(url string) *Setup {
		s := settingsFor(t, "agent.catalogUrl="+url)
		s.Home = home
		s.catalog = s.loadCatalog
		return s
	}
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	s := at(server.URL)
	c, path, err := s.UpdateModels(t.Context(), now)
	if err != nil || c.Len() != 2 || c.Date() != "2026-11-22" {
		t.Fatalf("%d models of %q, %v", c.Len(), c.Date(), err)
	}
	m := s.facts("groq", "new/model")
	if m.Context != 77_000 || m.Output != 5000 || !m.Reasoning || !m.Vision || m.Cutoff != "2026-09" || m.Price.Input != 1 || *m.Price.Cached != 0.1 || m.Price.Over != 200_000 || m.Price.Long.Output != 4 {
		t.Errorf("%+v", m)
	}
	if m := s.facts("gemini", "gemini-9"); m.Context != 9_000_000 || m.Price != nil {
		t.Errorf("%+v", m)
	}
	if s.facts("groq", "bad").Known || s.facts("groq", "dear").Known || !s.facts("groq", "openai/gpt-oss-120b").Known {
		t.Error("an invalid model is known, or a built-in one is not")
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ url, answer, want string }{
		"not encrypted":         {"http://models.example.com/api.json", "", "https://"},
		"redirected to such":    {server.URL + "/away", "", "https://"},
		"not there":             {"http://127.0.0.1:1/api.json", "", "stay known"},
		"not JSON":              {server.URL, "<html>", "not a catalog"},
		"another form":          {server.URL, `{"groq": 7}`, "not a catalog"},
		"without a known model": {server.URL, `{"groq": {"models": {"bad": {"limit": {"context": -1}}}}}`, "no model"},
		"too long":              {server.URL, strings.Repeat(" ", maxCatalog+1), "longer than 32 MiB"},
	} {
		answer = test.answer
		_, _, err := at(test.url).UpdateModels(t.Context(), now)
		after, _ := os.ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), test.want) || string(after) != string(before) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
