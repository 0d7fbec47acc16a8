package gemini

import (
	"cmp"
	"context"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

var _ model.WebSearcher = (*provider)(nil)

// SearchesWeb implements [model.WebSearcher].
func (p *provider) SearchesWeb(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(cmp.Or(name, p.Info().Model), "models/"), "gemini-")
}

// grounding is the part of a candidate that names its sources.
type grounding struct {
	GroundingChunks []struct {
		Web struct{ URI, Title string }
	}
	GroundingSupports []struct {
		Segment               struct{ Text string }
		GroundingChunkIndices []int
	}
}

// SearchWeb implements [model.WebSearcher]. The addresses of the sources are
// redirects of the service. See https://ai.google.dev/gemini-api/docs/google-search.
func (p *provider) SearchWeb(ctx context.Context, q model.WebQuery) (*model.WebAnswer, error) {
	name, err := p.Model(&model.Request{Model: q.Model})
	if err != nil {
		return nil, err
	}
	name = strings.TrimPrefix(name, "models/")
	text := q.Text
	for _, d := range q.Domains { // the API has no filter
		text += " site:" + d
	}
	body, err := wire.Marshal(map[string]any{
		"systemInstruction": says("", wire.WebInstructions),
		"contents":          []any{says("user", text)},
		"tools":             []any{map[string]any{"googleSearch": struct{}{}}},
	})
	if err != nil {
		return nil, p.Wrap(model.CodeInvalidRequest, "the search cannot be encoded", err)
	}
	var resp struct {
		ModelVersion string
		Candidates   []struct {
			Content           content
			GroundingMetadata grounding
		}
		UsageMetadata usage
	}
	u := p.url(name, "generateContent")
	u.RawQuery = p.URL().RawQuery // not streamed
	if err := p.PostJSON(ctx, wire.Post{URL: u, Body: body}, &resp); err != nil {
		return nil, err
	}
	a := &model.WebAnswer{Model: cmp.Or(resp.ModelVersion, name), Usage: resp.UsageMetadata.total()}
	for _, c := range resp.Candidates {
		for _, t := range c.Content.Parts {
			if !t.Thought {
				a.Text += t.Text
			}
		}
		g := c.GroundingMetadata
		texts := make([]string, len(g.GroundingChunks))
		for _, s := range g.GroundingSupports {
			for _, i := range s.GroundingChunkIndices {
				if i >= 0 && i < len(texts) {
					texts[i] = strings.TrimSpace(texts[i] + " " + s.Segment.Text)
				}
			}
		}
		for i, c := range g.GroundingChunks {
			a.Add(model.WebSource{Title: c.Web.Title, URL: c.Web.URI, Text: texts[i]})
		}
	}
	return a, nil
}

// says is a message with one text.
func says(role, text string) map[string]any {
	m := map[string]any{"parts": []map[string]string{{"text": text}}}
	if role != "" {
		m["role"] = role
	}
	return m
}
