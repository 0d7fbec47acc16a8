package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/facts"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/langchain/clients"
	"github.com/seed-009c0928/agent/core/model/openai"
)

// namedKind returns a preset or a provider that the user defines.
func namedKind(name string) ProviderKind {
	preset, known := config.FindPreset(name)
	k := ProviderKind{Name: name, About: preset.About, Local: preset.Local, Preset: known}
	if !known {
		k.About = "defined in your settings"
	}
	k.Values = func(p *config.Providers) ProviderValues {
		n := p.Named[name]
		if n == nil {
			n = &config.NamedProvider{}
		}
		v := ProviderValues{BaseURL: n.BaseURL, Model: n.Model, Key: n.APIKey, options: n.Options, Keyed: keyNeeded(n, preset)}
		if client := n.LangchainClient(name); client != "" {
			c := clients.Describe(client)
			if n.BaseURL == preset.BaseURL { // of another API
				v.BaseURL = c.BaseURL
			}
			v.Keyed = c.NeedsKey
		}
		return v
	}
	k.open = func(ctx context.Context, o openOptions) (model.Provider, error) {
		n := o.settings.Named[name]
		o.Headers = map[string]string{}
		for header, value := range n.Headers {
			text, err := value.Reveal(ctx)
			if err != nil {
				return nil, err
			}
			o.Headers[header] = text
		}
		return o.openNamed(n, preset)
	}
	return k
}

func (o *openOptions) openNamed(n *config.NamedProvider, preset config.Preset) (model.Provider, error) {
	if client := n.LangchainClient(o.Name); client != "" {
		return clients.New(clients.Config{Config: o.Config, Client: client, MaxTokens: o.maxTokens})
	}
	if keyNeeded(n, preset) {
		if err := o.NeedKey(preset.Env); err != nil {
			return nil, err
		}
	} else if o.APIKey == "" { // the clients below cannot know that none is needed
		o.Token = func(context.Context) (string, error) { return "", nil }
	}
	switch n.API {
	case "responses":
		return openai.New(openai.Config{Config: o.Config})
	case "anthropic":
		return anthropic.New(anthropic.Config{Config: o.Config, MaxTokens: o.maxTokens})
	case "gemini":
		return gemini.New(gemini.Config{Config: o.Config})
	}
	var quirks []langchain.Quirk
	for _, q := range preset.Quirks {
		quirks = append(quirks, langchain.Quirk(q))
	}
	return langchain.Compatible(o.Config, quirks...)
}

// keyNeeded reports whether a provider is known to need a key: a preset at its
// own address. Others may, too.
func keyNeeded(n *config.NamedProvider, preset config.Preset) bool {
	return preset.Env != "" && n.BaseURL == preset.BaseURL
}

// Configured reports whether a provider is worth a line in a list: presets only
// if something was set for them.
func (s *Setup) Configured(k ProviderKind) bool {
	if !k.Preset || k.Name == s.Settings.Providers.Default {
		return true
	}
	for _, name := range []string{"apiKey", "baseUrl", "model", "api", "options", "headers"} {
		if s.Loaded.Source("providers."+k.Name+"."+name).Layer > config.LayerDefault {
			return true
		}
	}
	return slices.ContainsFunc(s.Settings.Providers.Fallback, func(f string) bool {
		name, _, _ := strings.Cut(f, "/")
		return name == k.Name
	})
}

// KnownModels returns names that --model and /model accept: PROVIDER/MODEL for the
// model of each configured provider, and for the known models of its vendor.
func (s *Setup) KnownModels() []string {
	var names []string
	for _, k := range s.ProviderKinds() {
		if !s.Configured(k) {
			continue
		}
		if name := k.Values(&s.Settings.Providers).Model; name != "" {
			names = append(names, k.Name+"/"+name)
		}
		for _, id := range facts.OfVendor(k.Name) {
			names = append(names, k.Name+"/"+id)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// langchainWarning says that the default provider's client has no tool calls, if
// that is so.
func (s *Setup) langchainWarning() string {
	name := s.Settings.Providers.Default
	n := s.Settings.Providers.Named[name]
	if n == nil {
		return ""
	}
	client := n.LangchainClient(name)
	if client == "" || clients.HasTools(client, s.Loaded.Model()) {
		return ""
	}
	return fmt.Sprintf("langchaingo's client %s has no tool calls for this model: it can answer, but not read or change files", client)
}
