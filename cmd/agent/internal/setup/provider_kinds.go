package setup

import (
	"cmp"
	"context"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/credential"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// ProviderKind is a supported provider. One that speaks a known API needs an
// entry in the presets of package config, any other an entry in builtinKinds and
// a field in [config.Providers].
type ProviderKind struct {
	Name   string // in the settings: providers.NAME
	About  string // one line for agent providers setup
	Local  bool   // its server may run on this machine
	Preset bool   // known by its address only
	Values func(*config.Providers) ProviderValues
	open   func(ctx context.Context, o openOptions) (model.Provider, error)
	// searches reports whether the service searches the web; nil is no.
	searches func(*config.Providers) bool
}

// ProviderValues are the settings that every provider has.
type ProviderValues struct {
	BaseURL, Model string
	Key            config.Secret
	Keyed          bool       // it needs a key, or a token from tokenCommand
	tokenCommand   string     // prints a token if there is no key; may be empty
	names          wire.Names // of the settings
	options        config.Object
}

// openOptions are the options of ProviderKind.open.
type openOptions struct {
	wire.Config
	settings  *config.Providers
	env       func(string) string
	maxTokens func(model string) int // of an answer; 0 = unknown
	replays   bool                   // answers come from a recording; no token is needed
}

type tokenFunc = func(context.Context) (string, error)

// token returns f, or a placeholder in a replay.
func (o openOptions) token(f tokenFunc) tokenFunc {
	if !o.replays {
		return f
	}
	return func(context.Context) (string, error) { return replayed, nil }
}

// ProviderKinds returns all providers, in the order of [config.Providers.Names].
func (s *Setup) ProviderKinds() []ProviderKind {
	kinds := builtinKinds()
	for _, name := range s.Settings.Providers.Names()[len(kinds):] {
		kinds = append(kinds, namedKind(name))
	}
	return kinds
}

func builtinKinds() []ProviderKind {
	return []ProviderKind{localKind(), openaiKind(), anthropicKind(), geminiKind(), githubKind(), azureKind(), foundryKind()}
}

func localKind() ProviderKind {
	return ProviderKind{
		Name: "local", About: "local model server, such as Ollama, LM Studio, vLLM or Docker Model Runner", Local: true,
		Values: func(p *config.Providers) ProviderValues {
			return ProviderValues{BaseURL: p.Local.BaseURL, Model: p.Local.Model, Key: p.Local.APIKey, options: p.Local.Options}
		},
		open: func(_ context.Context, o openOptions) (model.Provider, error) { return langchain.Local(o.Config) },
	}
}

func openaiKind() ProviderKind {
	return ProviderKind{
		Name: "openai", About: "OpenAI or a compatible service; needs a key",
		Values: func(p *config.Providers) ProviderValues {
			return ProviderValues{BaseURL: p.OpenAI.BaseURL, Model: p.OpenAI.Model, Key: p.OpenAI.APIKey, Keyed: true, options: p.OpenAI.Options}
		},
		open: func(_ context.Context, o openOptions) (model.Provider, error) {
			s := o.settings.OpenAI
			if s.API == "chat" {
				return langchain.OpenAI(o.Config)
			}
			return openai.New(openai.Config{Config: o.Config, Organization: s.Organization, Project: s.Project})
		},
		// A compatible service at another address rarely does.
		searches: func(p *config.Providers) bool {
			return p.OpenAI.API != "chat" && strings.HasPrefix(p.OpenAI.BaseURL, "https://api.openai.com/")
		},
	}
}

func anthropicKind() ProviderKind {
	return ProviderKind{
		Name: "anthropic", About: "Anthropic Claude; needs a key",
		Values: func(p *config.Providers) ProviderValues {
			return ProviderValues{BaseURL: p.Anthropic.BaseURL, Model: p.Anthropic.Model, Key: p.Anthropic.APIKey, Keyed: true, options: p.Anthropic.Options}
		},
		open: func(_ context.Context, o openOptions) (model.Provider, error) {
			return anthropic.New(anthropic.Config{Config: o.Config, MaxTokens: o.maxTokens})
		},
		searches: func(p *config.Providers) bool {
			return strings.HasPrefix(p.Anthropic.BaseURL, "https://api.anthropic.com/")
		},
	}
}

func geminiKind() ProviderKind {
	return ProviderKind{
		Name: "gemini", About: "Google Gemini; needs a key, or Vertex AI with gcloud credentials",
		Values: func(p *config.Providers) ProviderValues {
			g := p.Gemini
			v := ProviderValues{BaseURL: cmp.Or(g.BaseURL, gemini.BaseURL(g.UseVertexAI, g.Location)), Model: g.Model, Key: g.APIKey, Keyed: true, options: g.Options}
			if g.UseVertexAI {
				v.tokenCommand = "gcloud auth application-default print-access-token"
			}
			return v
		},
		open: func(_ context.Context, o openOptions) (model.Provider, error) {
			g := o.settings.Gemini
			if o.Token = o.token(credential.Google(o.env)); o.replays && g.Project == "" {
				o.APIKey = replayed // recorded with a key
			}
			return gemini.New(gemini.Config{Config: o.Config, Vertex: g.UseVertexAI, Project: g.Project, Location: g.Location})
		},
		searches: func(*config.Providers) bool { return true },
	}
}

func githubKind() ProviderKind {
	return ProviderKind{
		Name: "github", About: "GitHub Models; needs a token, or gh signed in",
		Values: func(p *config.Providers) ProviderValues {
			return ProviderValues{
				BaseURL: p.GitHub.Endpoint, Model: p.GitHub.Model, Key: p.GitHub.Token, Keyed: true,
				tokenCommand: "gh auth token", names: wire.Names{APIKey: "token", BaseURL: "endpoint"}, options: p.GitHub.Options,
			}
		},
		open: func(_ context.Context, o openOptions) (model.Provider, error) {
			o.Token = o.token(credential.GitHub(o.env))
			return langchain.GitHub(langchain.GitHubConfig{Config: o.Config, Org: o.settings.GitHub.Org})
		},
	}
}

// azureTokenCommand prints a token for Azure.
const azureTokenCommand = "az account get-access-token"

// azureResource is what the token of provider azure is for.
const azureResource = "https://cognitiveservices.azure.com"

func azureKind() ProviderKind {
	return ProviderKind{
		Name: "azure", About: "Azure OpenAI; needs a key, or az signed in",
		Values: func(p *config.Providers) ProviderValues {
			return ProviderValues{
				BaseURL: p.Azure.Endpoint, Model: p.Azure.Deployment, Key: p.Azure.APIKey, Keyed: true,
				tokenCommand: azureTokenCommand, names: wire.Names{BaseURL: "endpoint", Model: "deployment"}, options: p.Azure.Options,
			}
		},
		open: func(_ context.Context, o openOptions) (model.Provider, error) {
			o.Token = o.token(credential.Azure(o.env, azureResource))
			return langchain.Azure(langchain.AzureConfig{Config: o.Config, APIVersion: o.settings.Azure.APIVersion})
		},
	}
}

func foundryKind() ProviderKind {
	return ProviderKind{
		Name: "foundry", About: "Azure AI Foundry; Foundry Local on this machine, or a cloud project",
		Values: func(p *config.Providers) ProviderValues {
			f := p.Foundry
			if f.Mode == "cloud" {
				return ProviderValues{
					BaseURL: f.ProjectEndpoint, Model: f.ModelDeployment, Key: f.APIKey, Keyed: true,
					tokenCommand: azureTokenCommand, names: wire.Names{BaseURL: "projectEndpoint", Model: "modelDeployment"}, options: f.Options,
				}
			}
			return ProviderValues{BaseURL: f.BaseURL, Model: f.ModelAlias, names: wire.Names{Model: "modelAlias"}, options: f.Options}
		},
		open: func(ctx context.Context, o openOptions) (model.Provider, error) {
			if o.settings.Foundry.Mode == "cloud" {
				o.Token = o.token(credential.Azure(o.env, "https://ai.azure.com"))
				return langchain.Foundry(o.Config)
			}
			if o.BaseURL == "" && !o.replays {
				var err error
				if o.BaseURL, err = credential.FoundryLocal(ctx, o.env); err != nil {
					return nil, err
				}
			}
			return langchain.FoundryLocal(o.Config)
		},
	}
}
