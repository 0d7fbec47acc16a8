package anthropic

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

const (
	apiVersion = "2023-06-01"
	baseURL    = "https://api.anthropic.com/v1"
)

// Config is the configuration of the provider.
type Config struct {
	wire.Config
	// MaxTokens returns the maximum length of a model's answers in tokens, which
	// requests must contain. If it is nil or returns 0, there is a default.
	MaxTokens func(model string) int
}

// New returns a provider. The error is a *model.Error with CodeNotConfigured,
// for example if there is no key.
func New(cfg Config) (model.Provider, error) {
	cfg.Default("anthropic", baseURL, "")
	if err := cfg.NeedKey("ANTHROPIC_API_KEY"); err != nil {
		return nil, err
	}
	c, err := wire.New(cfg.Config, wire.Dialect{
		Header:    http.Header{"Anthropic-Version": {apiVersion}},
		Authorize: func(h http.Header, key string) { h.Set("X-Api-Key", key) },
		Fault:     fault,
	})
	if err != nil {
		return nil, err
	}
	return &provider{Client: c, maxTokens: cfg.MaxTokens, schemas: adapt.New(adapt.Anthropic)}, nil
}

type provider struct {
	*wire.Client
	maxTokens func(string) int
	schemas   *adapt.Adapter
}

var (
	_ model.Provider = (*provider)(nil)
	_ model.Lister   = (*provider)(nil)
	_ model.Deferrer = (*provider)(nil)
)

// named finds the version in a model's name, such as claude-opus-4-5 or
// claude-sonnet-4-20250514. Older names, such as claude-3-5-sonnet, do not match.
var named = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)
})

// DefersTools implements [model.Deferrer]. Models since version 4.5 load tools by
// references. See
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool.
func (p *provider) DefersTools(name string) bool {
	m := named().FindStringSubmatch(cmp.Or(name, p.Info().Model))
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1]) // digits, by the pattern
	minor, _ := strconv.Atoi(m[2])
	return major > 4 || major == 4 && minor >= 5
}

// Stream implements [model.Provider].
func (p *provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	name, err := p.Model(req)
	return p.Client.Stream(ctx, func() (wire.Post, error) {
		if err != nil {
			return wire.Post{}, err
		}
		return p.post(name, req)
	}, func(emit func(model.Delta) error) wire.Decoder {
		return &answer{emit: emit, provider: p.Info().Name, requested: name}
	})
}

// author returns the prefix of a signature. A model accepts only its own.
func author(provider, model string) string { return provider + "/" + model + ":" }

// Models implements [model.Lister].
func (p *provider) Models(ctx context.Context) ([]string, error) {
	names := []string{}
	query := url.Values{"limit": {"1000"}}
	for {
		var page struct {
			Data    []struct{ ID string }
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		u := p.URL("models")
		u.RawQuery = query.Encode()
		if err := p.GetJSON(ctx, u, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			names = append(names, wire.Clip(m.ID, 300))
		}
		if !page.HasMore || page.LastID == "" || page.LastID == query.Get("after_id") {
			return names, nil
		}
		query.Set("after_id", page.LastID)
	}
}

// fault parses an error: {"type":"error","error":{"type":…,"message":…}}. See
// https://platform.claude.com/docs/en/api/errors.
func fault(_ int, body []byte) wire.Fault {
	f := wire.ParseFault(body)
	switch f.Type {
	case "authentication_error", "permission_error":
		f.As = model.CodeAuthentication
	case "billing_error":
		f.As, f.Permanent = model.CodeRateLimited, true
	case "not_found_error":
		f.As = model.CodeModelNotFound
	case "request_too_large":
		f.As = model.CodeContextLength
	case "rate_limit_error":
		f.As = model.CodeRateLimited
	case "timeout_error":
		f.As = model.CodeTimeout
	case "api_error", "overloaded_error":
		f.As = model.CodeNetwork
	}
	return f
}
