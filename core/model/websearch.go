package model

import (
	"context"
	"errors"
)

// WebSearcher is a [Provider] whose service searches the web. Both methods are
// safe for concurrent use.
type WebSearcher interface {
	// SearchesWeb reports whether a model of the service does so; empty means the
	// provider's default model.
	SearchesWeb(model string) bool
	// SearchWeb lets a model search. The error is a *[Error].
	SearchWeb(ctx context.Context, q WebQuery) (*WebAnswer, error)
}

// WebQuery is a search of the web.
type WebQuery struct {
	Model   string // empty means the provider's default model
	Text    string
	Domains []string // only these and their subdomains; empty is the whole web
}

// WebAnswer is what a search found. All of it is untrusted.
type WebAnswer struct {
	Text    string // the model's summary
	Sources []WebSource
	Usage   Usage
	Model   string // the model that searched
}

// WebSource is a page that a search found.
type WebSource struct {
	Title, URL string
	Text       string // an excerpt; may be empty
}

// Add adds a source unless it is there; a known one gets the missing text.
func (a *WebAnswer) Add(s WebSource) {
	if s.URL == "" {
		return
	}
	for i := range a.Sources {
		if have := &a.Sources[i]; have.URL == s.URL {
			if have.Text == "" {
				have.Text = s.Text
			}
			return
		}
	}
	a.Sources = append(a.Sources, s)
}

// SearchesWeb reports whether p searches the web with a model.
func SearchesWeb(p Provider, model string) bool {
	s, ok := p.(WebSearcher)
	return ok && s.SearchesWeb(model)
}

// ErrNoWebSearch is the error of a search with a provider that is no [WebSearcher].
var ErrNoWebSearch = errors.New("the model's provider does not search the web")

// SearchWeb searches with p.
func SearchWeb(ctx context.Context, p Provider, q WebQuery) (*WebAnswer, error) {
	if s, ok := p.(WebSearcher); ok && s.SearchesWeb(q.Model) {
		return s.SearchWeb(ctx, q)
	}
	return nil, ErrNoWebSearch
}

// SearchesWeb implements [WebSearcher].
func (r *retrying) SearchesWeb(model string) bool { return SearchesWeb(r.Provider, model) }

// SearchWeb implements [WebSearcher]. It does not retry: the caller is a model,
// which can.
func (r *retrying) SearchWeb(ctx context.Context, q WebQuery) (*WebAnswer, error) {
	return SearchWeb(ctx, r.Provider, q)
}

// SearchesWeb implements [WebSearcher]: the first provider counts.
func (f *fallback) SearchesWeb(model string) bool { return SearchesWeb(f.all[0], model) }

// SearchWeb implements [WebSearcher].
func (f *fallback) SearchWeb(ctx context.Context, q WebQuery) (*WebAnswer, error) {
	return SearchWeb(ctx, f.all[0], q)
}
