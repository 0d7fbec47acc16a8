package openai

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"regexp"
	"strconv"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

const baseURL = "https://api.openai.com/v1"

// Config is the configuration of the provider.
type Config struct {
	wire.Config
	Organization, Project string // to charge; may be empty
}

// New returns a provider. The error is a *model.Error with CodeNotConfigured,
// for example if there is no key.
func New(cfg Config) (model.Provider, error) {
	cfg.Default("openai", baseURL, "")
	if err := cfg.NeedKey("OPENAI_API_KEY"); err != nil {
		return nil, err
	}
	header := http.Header{}
	if cfg.Organization != "" {
		header.Set("OpenAI-Organization", cfg.Organization)
	}
	if cfg.Project != "" {
		header.Set("OpenAI-Project", cfg.Project)
	}
	c, err := wire.New(cfg.Config, wire.Dialect{Header: header, Fault: fault})
	if err != nil {
		return nil, err
	}
	return &provider{c, adapt.New(adapt.OpenAI)}, nil
}

type provider struct {
	*wire.Client
	schemas *adapt.Adapter
}

var (
	_ model.Provider = (*provider)(nil)
	_ model.Lister   = (*provider)(nil)
	_ model.Deferrer = (*provider)(nil)
)

var version = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^gpt-(\d+)(?:\.(\d+))?`) })

// DefersTools implements [model.Deferrer]. Models since gpt-5.4 search for tools.
// See https://developers.openai.com/api/docs/guides/tools-tool-search.
func (p *provider) DefersTools(name string) bool { return searchesTools(cmp.Or(name, p.Info().Model)) }

func searchesTools(name string) bool {
	m := version().FindStringSubmatch(name)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1]) // digits, by the pattern
	minor, _ := strconv.Atoi(m[2])
	return major > 5 || major == 5 && minor >= 4
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

// Models implements [model.Lister].
func (p *provider) Models(ctx context.Context) ([]string, error) {
	var list struct{ Data []struct{ ID string } }
	if err := p.GetJSON(ctx, p.URL("models"), &list); err != nil {
		return nil, err
	}
	names := []string{}
	for _, m := range list.Data {
		names = append(names, wire.Clip(m.ID, 300))
	}
	return names, nil
}
