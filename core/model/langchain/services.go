package langchain

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

// Local returns a provider for an OpenAI-compatible server, by default the local
// Ollama. It needs no key. The error is a *model.Error with CodeNotConfigured.
func Local(cfg wire.Config) (model.Provider, error) {
	cfg.Default("local", "http://localhost:11434/v1", "llama3.3:latest")
	return newChat(cfg, selfHosted, wire.Dialect{})
}

// selfHosted is the dialect of self-hosted servers.
var selfHosted = dialect{legacyMaxTokens: always, efforts: map[model.Effort]string{model.EffortXHigh: "high"}}

func always(string) bool { return true }

// OpenAI returns a provider for OpenAI's Chat Completions API. The error is a
// *model.Error with CodeNotConfigured, for example if there is no key.
func OpenAI(cfg wire.Config) (model.Provider, error) {
	cfg.Default("openai", openAIURL+"v1", "")
	if err := cfg.NeedKey("OPENAI_API_KEY"); err != nil {
		return nil, err
	}
	var d dialect
	if strings.HasPrefix(cfg.BaseURL, openAIURL) { // others with its API may accept less
		d.schemas = adapt.OpenAI
	}
	return newChat(cfg, d, wire.Dialect{})
}

const openAIURL = "https://api.openai.com/"

// GitHubConfig is the configuration of GitHub Models.
type GitHubConfig struct {
	wire.Config
	Org string // the organization to charge; may be empty
}

// GitHub returns a provider for GitHub Models
// (https://docs.github.com/en/rest/models/inference). The error is a
// *model.Error with CodeNotConfigured, for example if there is neither a key
// nor a Token.
func GitHub(cfg GitHubConfig) (model.Provider, error) {
	cfg.Default("github", "https://models.github.ai/inference", "")
	cfg.Names = wire.Names{APIKey: "token", BaseURL: "endpoint"}
	if err := cfg.NeedKey("GITHUB_TOKEN"); err != nil {
		return nil, err
	}
	if cfg.Org != "" {
		base := strings.TrimSuffix(strings.TrimSuffix(cfg.BaseURL, "/"), "/inference")
		cfg.BaseURL = base + "/orgs/" + url.PathEscape(cfg.Org) + "/inference"
	}
	c, err := newChat(cfg.Config, dialect{
		legacyMaxTokens: func(name string) bool { return !reasoning().MatchString(name) },
	}, wire.Dialect{Header: http.Header{"X-Github-Api-Version": {"2022-11-28"}}})
	if err != nil {
		return nil, err
	}
	return &github{c}, nil
}

// reasoning matches the models that accept only max_completion_tokens.
var reasoning = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:openai/)?(?:o\d|gpt-[5-9])`) })

// github lists the models of the catalogue, which is another API.
type github struct{ *chat }

// Models implements [model.Lister].
func (g *github) Models(ctx context.Context) ([]string, error) {
	u := g.URL()
	u.Path, u.RawPath = "/catalog/models", ""
	var list []struct{ ID string }
	if err := g.GetJSON(ctx, u, &list); err != nil {
		return nil, err
	}
	names := []string{}
	for _, m := range list {
		names = append(names, wire.Clip(m.ID, 300))
	}
	return names, nil
}

// AzureConfig is the configuration of Azure OpenAI. BaseURL is the address of the
// resource, Model the name of a deployment.
type AzureConfig struct {
	wire.Config
	APIVersion string // a date such as 2024-06-01, or v1 for the API without dates
}

// Azure returns a provider for Azure OpenAI
// (https://learn.microsoft.com/azure/ai-services/openai/reference). A key is sent
// in the header api-key, a Token as a bearer token. The error is a
// *model.Error with CodeNotConfigured, for example if there is no deployment.
func Azure(cfg AzureConfig) (model.Provider, error) {
	cfg.Default("azure", "", "")
	cfg.Names = wire.Names{BaseURL: "endpoint", Model: "deployment"}
	for setting, value := range map[string]string{"endpoint": cfg.BaseURL, "deployment": cfg.Model} {
		if strings.TrimSpace(value) == "" {
			return nil, &model.Error{Code: model.CodeNotConfigured, Provider: cfg.Name, Message: "set providers." + cfg.Name + "." + setting + " in the settings (`agent config path` lists the files)"}
		}
	}
	if err := cfg.NeedKey("AZURE_OPENAI_API_KEY"); err != nil {
		return nil, err
	}
	version := cfg.APIVersion
	if version == "" {
		version = "2024-06-01"
	}
	dated := version != "v1"
	old := dated && version < "2024-09" // has neither max_completion_tokens nor stream_options
	c, err := newChat(cfg.Config, dialect{legacyMaxTokens: func(string) bool { return old }, noStreamOptions: old}, azureHeader(cfg.Config))
	if err != nil {
		return nil, err
	}
	c.url = func(name string) *url.URL {
		if !dated {
			return c.URL("openai", "v1", "chat", "completions")
		}
		u := c.URL("openai", "deployments", url.PathEscape(name), "chat", "completions")
		q := u.Query()
		q.Set("api-version", version)
		u.RawQuery = q.Encode()
		return u
	}
	return unlisted{c}, nil // the service lists models, not deployments
}

// azureHeader returns the dialect that sends a key in the header api-key.
func azureHeader(cfg wire.Config) wire.Dialect {
	if strings.TrimSpace(cfg.APIKey) == "" {
		return wire.Dialect{}
	}
	return wire.Dialect{Authorize: func(h http.Header, key string) { h.Set("Api-Key", key) }}
}

// unlisted is a provider that does not list its models.
type unlisted struct{ model.Provider }

// Foundry returns a provider for a project of Azure AI Foundry
// (https://learn.microsoft.com/azure/ai-foundry), whose address is the BaseURL.
// The Model is a deployment. The error is a *model.Error with CodeNotConfigured.
func Foundry(cfg wire.Config) (model.Provider, error) {
	cfg.Default("foundry", "", "gpt-4o")
	cfg.Names = wire.Names{BaseURL: "projectEndpoint", Model: "modelDeployment"}
	if strings.TrimSpace(cfg.BaseURL) == "" {
		return nil, &model.Error{Code: model.CodeNotConfigured, Provider: cfg.Name, Message: "set providers." + cfg.Name + ".projectEndpoint in the settings (`agent config path` lists the files), or providers." + cfg.Name + ".mode to local"}
	}
	if err := cfg.NeedKey("AZURE_FOUNDRY_API_KEY"); err != nil {
		return nil, err
	}
	c, err := newChat(cfg, dialect{}, azureHeader(cfg))
	if err != nil {
		return nil, err
	}
	c.url = func(string) *url.URL { return c.URL("openai", "v1", "chat", "completions") }
	return unlisted{c}, nil
}

// FoundryLocal returns a provider for Foundry Local on this machine
// (https://learn.microsoft.com/azure/ai-foundry/foundry-local). The Model may be
// an alias, such as phi-4, for the server's first model that begins with it.
// The error is a *model.Error with CodeNotConfigured.
func FoundryLocal(cfg wire.Config) (model.Provider, error) {
	cfg.Default("foundry", "", "phi-4")
	cfg.Names = wire.Names{Model: "modelAlias"}
	c, err := newChat(cfg, selfHosted, wire.Dialect{})
	if err != nil {
		return nil, err
	}
	c.alias = &aliases{chat: c}
	return c, nil
}

// aliases resolves aliases of models.
type aliases struct {
	chat  *chat
	mu    sync.Mutex
	found map[string]string
}

// resolve returns the name of the model that an alias stands for, or the alias
// itself if it is not found.
func (a *aliases) resolve(ctx context.Context, alias string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name, ok := a.found[alias]; ok {
		return name
	}
	names, err := a.chat.Models(ctx)
	if err != nil {
		return alias // the request will report what is wrong
	}
	name := alias
	for _, n := range names {
		if n == alias {
			name = n
			break
		}
		if name == alias && strings.HasPrefix(strings.ToLower(n), strings.ToLower(alias)+"-") {
			name = n
		}
	}
	if a.found == nil {
		a.found = map[string]string{}
	}
	a.found[alias] = name
	return name
}
