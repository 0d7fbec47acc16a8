package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

// Config is the configuration of the provider.
type Config struct {
	wire.Config
	// Vertex selects Vertex AI. It needs a key (express mode), or a project and a
	// Token.
	Vertex            bool
	Project, Location string // for Vertex AI; the default Location is global
}

// BaseURL returns the default base URL of the Developer API, or of a location of
// Vertex AI.
func BaseURL(vertex bool, location string) string {
	switch {
	case !vertex:
		return "https://generativelanguage.googleapis.com/v1beta"
	case location == "" || location == "global":
		return "https://aiplatform.googleapis.com/v1"
	}
	return "https://" + location + "-aiplatform.googleapis.com/v1"
}

// New returns a provider. The error is a *model.Error with CodeNotConfigured,
// for example if there is no key.
func New(cfg Config) (model.Provider, error) {
	cfg.Default("gemini", BaseURL(cfg.Vertex, cfg.Location), "")
	if !cfg.Vertex {
		cfg.Token = nil
	}
	if err := cfg.NeedKey("GOOGLE_API_KEY"); err != nil {
		return nil, err
	}
	models := []string{"models"}
	if cfg.Vertex {
		models = []string{"publishers", "google", "models"}
		if cfg.APIKey == "" && cfg.Project == "" {
			return nil, &model.Error{
				Code: model.CodeNotConfigured, Provider: cfg.Name,
				Message: fmt.Sprintf("Vertex AI needs a project: set providers.%s.project in the settings or the variable GOOGLE_CLOUD_PROJECT", cfg.Name),
			}
		}
		if cfg.APIKey == "" {
			models = append([]string{"projects", cfg.Project, "locations", cmp.Or(cfg.Location, "global")}, models...)
		}
	}
	byKey := cfg.APIKey != ""
	c, err := wire.New(cfg.Config, wire.Dialect{
		Fault: fault,
		Authorize: func(h http.Header, credential string) {
			if byKey {
				h.Set("X-Goog-Api-Key", credential)
			} else {
				h.Set("Authorization", "Bearer "+credential)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &provider{c, models, cfg.Vertex, adapt.New(adapt.Gemini)}, nil
}

type provider struct {
	*wire.Client
	models  []string // path of the models below the base URL
	vertex  bool
	schemas *adapt.Adapter
}

var (
	_ model.Provider = (*provider)(nil)
	_ model.Lister   = (*provider)(nil)
)

// Stream implements [model.Provider].
func (p *provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	name, err := p.Model(req)
	name = strings.TrimPrefix(name, "models/")
	return p.Client.Stream(ctx, func() (wire.Post, error) {
		if err != nil {
			return wire.Post{}, err
		}
		return p.post(name, req)
	}, func(emit func(model.Delta) error) wire.Decoder {
		return &answer{emit: emit, provider: p.Info().Name, requested: name}
	})
}

// url returns the URL of a model's method.
func (p *provider) url(name, method string) *url.URL {
	u := p.URL(append(slices.Clone(p.models), url.PathEscape(name)+":"+method)...)
	q := u.Query()
	q.Set("alt", "sse")
	u.RawQuery = q.Encode()
	return u
}

// Models implements [model.Lister]. Vertex AI has no list for a project.
func (p *provider) Models(ctx context.Context) ([]string, error) {
	if p.vertex {
		return nil, p.Wrap(model.CodeNotSupported, "Vertex AI does not list its models; see https://cloud.google.com/vertex-ai/generative-ai/docs/models", nil)
	}
	names := []string{}
	for token := ""; ; {
		var page struct {
			Models []struct {
				Name    string
				Methods []string `json:"supportedGenerationMethods"`
			}
			Next string `json:"nextPageToken"`
		}
		u := p.URL("models")
		q := u.Query()
		q.Set("pageSize", "1000")
		if token != "" {
			q.Set("pageToken", token)
		}
		u.RawQuery = q.Encode()
		if err := p.GetJSON(ctx, u, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Models {
			if slices.Contains(m.Methods, "generateContent") {
				names = append(names, wire.Clip(strings.TrimPrefix(m.Name, "models/"), 300))
			}
		}
		if page.Next == "" || page.Next == token {
			return names, nil
		}
		token = page.Next
	}
}

// fault parses {"error":{"code":429,"message":…,"status":…,"details":[…]}}. See
// https://cloud.google.com/apis/design/errors.
func fault(_ int, body []byte) wire.Fault {
	f := wire.ParseFault(body)
	var e struct {
		Error struct {
			Status  string
			Details []struct {
				Type   string `json:"@type"`
				Reason string
				Delay  string `json:"retryDelay"`
			}
		}
	}
	if json.Unmarshal(body, &e) != nil {
		return f
	}
	f.Type = e.Error.Status
	f.As = statuses[f.Type]
	for _, d := range e.Error.Details {
		if delay, err := time.ParseDuration(d.Delay); err == nil && delay > 0 && strings.HasSuffix(d.Type, "RetryInfo") {
			f.RetryAfter = delay
		}
		if d.Reason == "API_KEY_INVALID" {
			f.As = model.CodeAuthentication
		}
	}
	if f.As == model.CodeInvalidRequest {
		f.As = "" // the message may say more
	}
	return f
}

var statuses = map[string]model.ErrorCode{
	"INVALID_ARGUMENT":    model.CodeInvalidRequest,
	"FAILED_PRECONDITION": model.CodeInvalidRequest,
	"OUT_OF_RANGE":        model.CodeInvalidRequest,
	"UNAUTHENTICATED":     model.CodeAuthentication,
	"PERMISSION_DENIED":   model.CodeAuthentication,
	"NOT_FOUND":           model.CodeModelNotFound,
	"RESOURCE_EXHAUSTED":  model.CodeRateLimited,
	"INTERNAL":            model.CodeNetwork,
	"UNAVAILABLE":         model.CodeNetwork,
	"DEADLINE_EXCEEDED":   model.CodeTimeout,
	"UNIMPLEMENTED":       model.CodeNotSupported,
}
