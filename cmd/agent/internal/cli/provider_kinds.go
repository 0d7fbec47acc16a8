package cli

import (
	"cmp"
	"context"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/credential"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// providerKind is a provider that the command knows. A new one is an entry of
// providerKinds and a field of config.Providers.
type providerKind struct {
	name   string // of its settings: providers.NAME
	about  string // for a person who chooses one
	local  bool   // a server that may run on this machine
	values func(*config.Providers) providerValues
	open   func(ctx context.Context, o opening) (model.Provider, error)
}

// providerValues are the settings that every provider has.
type providerValues struct {
	baseURL, model string
	key            config.Secret
	keyed          bool       // it works with neither a key nor what is asked instead
	instead        string     // the command that is asked for a token when there is no key
	names          wire.Names // of the settings
	options        config.Object
}

// opening is what a provider is made of.
type opening struct {
	wire.Config
	settings  *config.Providers
	env       func(string) string
	maxTokens func(model string) int // of an answer; 0 where it is not known
	replays   bool                   // nothing is reached, and nobody is asked for a token
}

type tokenFunc = func(context.Context) (string, error)

// token is f, or what stands for a token where nothing is reached.
func (o opening) token(f tokenFunc) tokenFunc {
	if !o.replays {
		return f
	}
	return func(context.Context) (string, error) { return replayed, nil }
}

// providerKinds returns all providers.
func providerKinds() []providerKind {
	return []providerKind{localKind(), openaiKind(), anthropicKind(), geminiKind(), githubKind(), azureKind(), foundryKind()}
}

func localKind() providerKind {
	return providerKind{
		name: "local", about: "a model server of your own: Ollama, LM Studio, vLLM, Docker Model Runner", local: true,
		values: func(p *config.Providers) providerValues {
			return providerValues{baseURL: p.Local.BaseURL, model: p.Local.Model, key: p.Local.APIKey, options: p.Local.Options}
		},
		open: func(_ context.Context, o opening) (model.Provider, error) { return langchain.Local(o.Config) },
	}
}

func openaiKind() providerKind {
	return providerKind{
		name: "openai", about: "OpenAI, or a service that speaks its protocol; needs a key",
		values: func(p *config.Providers) providerValues {
			return providerValues{baseURL: p.OpenAI.BaseURL, model: p.OpenAI.Model, key: p.OpenAI.APIKey, keyed: true, options: p.OpenAI.Options}
		},
		open: func(_ context.Context, o opening) (model.Provider, error) {
			s := o.settings.OpenAI
			if s.API == "chat" {
				return langchain.OpenAI(o.Config)
			}
			return openai.New(openai.Config{Config: o.Config, Organization: s.Organization, Project: s.Project})
		},
	}
}

func anthropicKind() providerKind {
	return providerKind{
		name: "anthropic", about: "Anthropic's Claude; needs a key",
		values: func(p *config.Providers) providerValues {
			return providerValues{baseURL: p.Anthropic.BaseURL, model: p.Anthropic.Model, key: p.Anthropic.APIKey, keyed: true, options: p.Anthropic.Options}
		},
		open: func(_ context.Context, o opening) (model.Provider, error) {
			return anthropic.New(anthropic.Config{Config: o.Config, MaxTokens: o.maxTokens})
		},
	}
}

func geminiKind() providerKind {
	return providerKind{
		name: "gemini", about: "Google's Gemini; a key, or Vertex AI with gcloud's credentials",
		values: func(p *config.Providers) providerValues {
			g := p.Gemini
			v := providerValues{baseURL: cmp.Or(g.BaseURL, gemini.BaseURL(g.UseVertexAI, g.Location)), model: g.Model, key: g.APIKey, keyed: true, options: g.Options}
			if g.UseVertexAI {
				v.instead = "gcloud auth application-default print-access-token"
			}
			return v
		},
		open: func(_ context.Context, o opening) (model.Provider, error) {
			g := o.settings.Gemini
			if o.Token = o.token(credential.Google(o.env)); o.replays && g.Project == "" {
				o.APIKey = replayed // without a project it was a key
			}
			return gemini.New(gemini.Config{Config: o.Config, Vertex: g.UseVertexAI, Project: g.Project, Location: g.Location})
		},
	}
}

func githubKind() providerKind {
	return providerKind{
		name: "github", about: "GitHub Models; a token, or gh that is signed in",
		values: func(p *config.Providers) providerValues {
			return providerValues{
				baseURL: p.GitHub.Endpoint, model: p.GitHub.Model, key: p.GitHub.Token, keyed: true,
				instead: "gh auth token", names: wire.Names{APIKey: "token", BaseURL: "endpoint"}, options: p.GitHub.Options,
			}
		},
		open: func(_ context.Context, o opening) (model.Provider, error) {
			o.Token = o.token(credential.GitHub(o.env))
			return langchain.GitHub(langchain.GitHubConfig{Config: o.Config, Org: o.settings.GitHub.Org})
		},
	}
}

// insteadAzure is asked for a token of Azure.
const insteadAzure = "az account get-access-token"

func azureKind() providerKind {
	return providerKind{
		name: "azure", about: "Azure OpenAI; a key, or az that is signed in",
		values: func(p *config.Providers) providerValues {
			return providerValues{
				baseURL: p.Azure.Endpoint, model: p.Azure.Deployment, key: p.Azure.APIKey, keyed: true,
				instead: insteadAzure, names: wire.Names{BaseURL: "endpoint", Model: "deployment"}, options: p.Azure.Options,
			}
		},
		open: func(_ context.Context, o opening) (model.Provider, error) {
			o.Token = o.token(credential.Azure(o.env, "https://cognitiveservices.azure.com"))
			return langchain.Azure(langchain.AzureConfig{Config: o.Config, APIVersion: o.settings.Azure.APIVersion})
		},
	}
}

func foundryKind() providerKind {
	return providerKind{
		name: "foundry", about: "Azure AI Foundry: Foundry Local on this machine, or a project in the cloud",
		values: func(p *config.Providers) providerValues {
			f := p.Foundry
			if f.Mode == "cloud" {
				return providerValues{
					baseURL: f.ProjectEndpoint, model: f.ModelDeployment, key: f.APIKey, keyed: true,
					instead: insteadAzure, names: wire.Names{BaseURL: "projectEndpoint", Model: "modelDeployment"}, options: f.Options,
				}
			}
			return providerValues{baseURL: f.BaseURL, model: f.ModelAlias, names: wire.Names{Model: "modelAlias"}, options: f.Options}
		},
		open: func(ctx context.Context, o opening) (model.Provider, error) {
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
