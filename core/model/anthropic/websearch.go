package anthropic

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

var _ model.WebSearcher = (*provider)(nil)

// pages are those of a search: a list of pages, or an error.
type pages struct {
	list   []struct{ Title, URL string }
	failed string
}

// UnmarshalJSON implements [json.Unmarshaler]. The content of other blocks has
// other forms, which are left out.
func (r *pages) UnmarshalJSON(data []byte) error {
	var failure struct {
		Code string `json:"error_code"`
	}
	_ = json.Unmarshal(data, &failure) // pages are a list and leave it empty
	r.failed = failure.Code
	return wire.Lenient(data, &r.list)
}

// SearchesWeb implements [model.WebSearcher]. Models since version 4 do.
func (p *provider) SearchesWeb(name string) bool {
	return named().MatchString(cmp.Or(name, p.Info().Model))
}

// SearchWeb implements [model.WebSearcher]. See
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool.
func (p *provider) SearchWeb(ctx context.Context, q model.WebQuery) (*model.WebAnswer, error) {
	name, err := p.Model(&model.Request{Model: q.Model})
	if err != nil {
		return nil, err
	}
	search := map[string]any{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
	if len(q.Domains) > 0 {
		search["allowed_domains"] = q.Domains
	}
	const maxTokens = 4096
	body, err := wire.Marshal(map[string]any{
		"model": name, "max_tokens": maxTokens, "system": wire.WebInstructions, "tools": []any{search},
		"messages": []any{map[string]string{"role": "user", "content": q.Text}},
	})
	if err != nil {
		return nil, p.Wrap(model.CodeInvalidRequest, "the search cannot be encoded", err)
	}
	var resp struct {
		Model   string
		Content []struct {
			Type, Text string
			Content    pages // of a search
			Citations  []struct {
				URL, Title string
				CitedText  string `json:"cited_text"`
			}
		}
		Usage usage
	}
	if err := p.PostJSON(ctx, wire.Post{URL: p.URL("messages"), Body: body}, &resp); err != nil {
		return nil, err
	}
	a := &model.WebAnswer{Model: cmp.Or(resp.Model, name), Usage: resp.Usage.total()}
	var failed string
	for _, b := range resp.Content {
		if b.Type == "text" {
			a.Text += b.Text
		}
		for _, c := range b.Citations {
			a.Add(model.WebSource{Title: c.Title, URL: c.URL, Text: c.CitedText})
		}
	}
	for _, b := range resp.Content { // those that the answer cites come first
		for _, r := range b.Content.list {
			a.Add(model.WebSource{Title: r.Title, URL: r.URL})
		}
		failed = cmp.Or(failed, b.Content.failed)
	}
	if failed != "" && len(a.Sources) == 0 {
		return nil, p.Wrap(model.CodeNetwork, "the search failed: "+wire.Clip(failed, 100), nil)
	}
	return a, nil
}
