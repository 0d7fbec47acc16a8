package openai

import (
	"cmp"
	"context"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

var _ model.WebSearcher = (*provider)(nil)

// SearchesWeb implements [model.WebSearcher]. Models since gpt-4 do.
func (p *provider) SearchesWeb(name string) bool {
	return version().MatchString(cmp.Or(name, p.Info().Model)) || reasons(cmp.Or(name, p.Info().Model))
}

// SearchWeb implements [model.WebSearcher]. See
// https://developers.openai.com/api/docs/guides/tools-web-search.
func (p *provider) SearchWeb(ctx context.Context, q model.WebQuery) (*model.WebAnswer, error) {
	name, err := p.Model(&model.Request{Model: q.Model})
	if err != nil {
		return nil, err
	}
	search := map[string]any{"type": "web_search"}
	if len(q.Domains) > 0 {
		search["filters"] = map[string]any{"allowed_domains": q.Domains}
	}
	body, err := wire.Marshal(map[string]any{
		"model": name, "store": false, "instructions": wire.WebInstructions, "input": q.Text,
		"tools": []any{search}, "tool_choice": "required", "include": []string{"web_search_call.action.sources"},
	})
	if err != nil {
		return nil, p.Wrap(model.CodeInvalidRequest, "the search cannot be encoded", err)
	}
	var resp struct {
		Model  string
		Output []struct {
			Action  struct{ Sources []struct{ URL, Title string } }
			Content []struct {
				Text        string
				Annotations []struct{ Type, URL, Title string }
			}
		}
		Usage usage
	}
	if err := p.PostJSON(ctx, wire.Post{URL: p.URL("responses"), Body: body}, &resp); err != nil {
		return nil, err
	}
	a := &model.WebAnswer{Model: cmp.Or(resp.Model, name), Usage: resp.Usage.total()}
	for _, item := range resp.Output {
		for _, c := range item.Content {
			a.Text += c.Text
			for _, n := range c.Annotations {
				a.Add(model.WebSource{Title: n.Title, URL: n.URL})
			}
		}
	}
	for _, item := range resp.Output { // those that the answer cites come first
		for _, s := range item.Action.Sources {
			a.Add(model.WebSource{Title: s.Title, URL: s.URL})
		}
	}
	return a, nil
}
