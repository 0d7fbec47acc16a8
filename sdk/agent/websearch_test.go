package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// searcher is a provider that searches the web.
type searcher struct {
	model.Provider
	asked model.WebQuery
	err   error
}

func (*searcher) SearchesWeb(string) bool { return true }

func (s *searcher) SearchWeb(_ context.Context, q model.WebQuery) (*model.WebAnswer, error) {
	s.asked = q
	return &model.WebAnswer{
		Text: "High at noon.\u202e", Usage: model.Usage{Input: 1000, Output: 10},
		Sources: []model.WebSource{{Title: "Tides\nand more", URL: "https://b.example/2", Text: strings.Repeat("high ", 500)}},
	}, s.err
}

func TestWebSearch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		args  string
		err   error
		plain bool // the provider does not search
		want  string
	}{
		{"found", `{"query":"tides","domains":["b.example"]}`, nil, false, "High at noon.\n\nSources:\n1. Tides and more\n   https://b.example/2\n   high high"},
		{"empty", `{"query":" "}`, nil, false, "query is empty"},
		{"failed", `{"query":"tides"}`, errors.New("no credit"), false, "no credit; the setting web.search names another search engine"},
		{"no search", `{"query":"tides"}`, nil, true, "does not search the web"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, _ := open(t, func(o *agent.Options) { o.WebSearch = true }, nil)
			s := &searcher{Provider: coretest.Model(coretest.CallTools(model.ToolCall{Name: "web_search", Args: tt.args}), coretest.Say("Done.")), err: tt.err}
			var p model.Provider = s
			if tt.plain {
				p = s.Provider
			}
			session, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: p})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = session.Close() })
			out, err := session.Submit(t.Context(), core.TextInput("When is high water?"))
			if err != nil {
				t.Fatal(err)
			}
			if paid := out.Usage.Input >= 1000; paid != (tt.name == "found") { // by the session
				t.Errorf("usage %+v", out.Usage)
			}
			var text string
			for _, m := range session.Messages() {
				for _, part := range m.Parts {
					if r, ok := part.(model.ToolResult); ok {
						text = r.Content.Text()
					}
				}
			}
			if !strings.Contains(text, tt.want) || len(text) > 2000 || strings.Contains(text, "\u202e") {
				t.Errorf("the model got %.900q, want %q", text, tt.want)
			}
			if tt.name == "found" && (s.asked.Text != "tides" || len(s.asked.Domains) != 1) {
				t.Errorf("asked %+v", s.asked)
			}
		})
	}
}
