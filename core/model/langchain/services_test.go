package langchain_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// plainChat converts requests for a service to those for a plain chat server.
type plainChat struct {
	http.RoundTripper
	got func(*http.Request)
}

func (p plainChat) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.got != nil {
		p.got(r)
	}
	r = r.Clone(r.Context())
	if strings.HasSuffix(r.URL.Path, "/chat/completions") {
		r.URL.Path, r.URL.RawQuery = "/v1/chat/completions", ""
	}
	if key := r.Header.Get("Api-Key"); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return p.RoundTripper.RoundTrip(r)
}

// services are the constructors of all services.
var services = map[string]func(wire.Config) (model.Provider, error){
	"github": func(c wire.Config) (model.Provider, error) {
		return langchain.GitHub(langchain.GitHubConfig{Config: c})
	},
	"azure": func(c wire.Config) (model.Provider, error) {
		return langchain.Azure(langchain.AzureConfig{Config: c, APIVersion: "2024-10-21"})
	},
	"azure v1": func(c wire.Config) (model.Provider, error) {
		return langchain.Azure(langchain.AzureConfig{Config: c, APIVersion: "v1"})
	},
	"foundry":       langchain.Foundry,
	"foundry local": langchain.FoundryLocal,
}

func TestServicesKeepTheContract(t *testing.T) {
	for name, make := range services {
		t.Run(name, func(t *testing.T) {
			modeltest.TestProvider(t, func(tb testing.TB, e modeltest.Endpoint) model.Provider {
				cfg := config(e)
				cfg.Transport = plainChat{e.Transport, nil}
				p, err := make(cfg)
				if err != nil {
					tb.Fatal(err)
				}
				return p
			})
		})
	}
}

// sent returns the request that a service received.
func sent(t *testing.T, p func(http.RoundTripper) (model.Provider, error), req *model.Request) (asked *http.Request, body *modeltest.Request) {
	t.Helper()
	chat := modeltest.NewChat(modeltest.Turn{Text: []string{"ok"}})
	url := chat.Serve(t)
	provider, err := p(plainChat{http.DefaultTransport, func(r *http.Request) {
		asked = r.Clone(context.Background())
		r.URL.Scheme, r.URL.Host = "http", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/v1")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Complete(t.Context(), provider, req); err != nil {
		t.Fatal(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return asked, chat.Requests()[0]
}

func TestServices(t *testing.T) {
	token := func(context.Context) (string, error) { return "short-lived", nil }
	for _, test := range []struct {
		name   string
		open   func(c wire.Config) (model.Provider, error)
		cfg    wire.Config
		url    string
		header string // name: value
		body   string // a part of the body
	}{
		{"github", services["github"], wire.Config{APIKey: "ghp_1", Model: "openai/gpt-4o-mini"}, "https://models.github.ai/inference/chat/completions", "Authorization: Bearer ghp_1", `"max_tokens":9`},
		{"github, a model that reasons", services["github"], wire.Config{Token: token, Model: "openai/gpt-5-mini"}, "https://models.github.ai/inference/chat/completions", "Authorization: Bearer short-lived", `"max_completion_tokens":9`},
		{"github, organization", func(c wire.Config) (model.Provider, error) {
			return langchain.GitHub(langchain.GitHubConfig{Config: c, Org: "acme"})
		}, wire.Config{APIKey: "ghp_1", Model: "m"}, "https://models.github.ai/orgs/acme/inference/chat/completions", "X-Github-Api-Version: 2022-11-28", `"stream_options":{"include_usage":true}`},
		{"azure", services["azure"], wire.Config{BaseURL: "https://r.openai.azure.com/", APIKey: "key-1", Model: "my dep"}, "https://r.openai.azure.com/openai/deployments/my%20dep/chat/completions?api-version=2024-10-21", "Api-Key: key-1", `"max_completion_tokens":9`},
		{"azure, the oldest version", func(c wire.Config) (model.Provider, error) {
			return langchain.Azure(langchain.AzureConfig{Config: c})
		}, wire.Config{BaseURL: "https://r.openai.azure.com", Token: token, Model: "dep"}, "https://r.openai.azure.com/openai/deployments/dep/chat/completions?api-version=2024-06-01", "Authorization: Bearer short-lived", `"max_tokens":9`},
		{"azure without dates", services["azure v1"], wire.Config{BaseURL: "https://r.openai.azure.com", APIKey: "key-1", Model: "dep"}, "https://r.openai.azure.com/openai/v1/chat/completions", "Api-Key: key-1", `"model":"dep"`},
		{"foundry", services["foundry"], wire.Config{BaseURL: "https://r.services.ai.azure.com/api/projects/p", APIKey: "key-1"}, "https://r.services.ai.azure.com/api/projects/p/openai/v1/chat/completions", "Api-Key: key-1", `"model":"gpt-4o"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := user("hi")
			req.MaxTokens = 9
			asked, got := sent(t, func(rt http.RoundTripper) (model.Provider, error) {
				test.cfg.Transport = rt
				return test.open(test.cfg)
			}, req)
			name, value, _ := strings.Cut(test.header, ": ")
			if asked.URL.String() != test.url || asked.Header.Get(name) != value {
				t.Errorf("asked %s, %v", asked.URL, asked.Header)
			}
			if asked.Header.Get("Api-Key") != "" && asked.Header.Get("Authorization") != "" {
				t.Errorf("two credentials: %v", asked.Header)
			}
			if !strings.Contains(string(got.Body), test.body) {
				t.Errorf("%s is missing in %s", test.body, got.Body)
			}
			if usage := strings.Contains(string(got.Body), "stream_options"); usage == (test.name == "azure, the oldest version") {
				t.Errorf("asks for the usage: %v", usage)
			}
		})
	}
}

func TestServicesNotConfigured(t *testing.T) {
	for _, test := range []struct {
		open func(wire.Config) (model.Provider, error)
		cfg  wire.Config
		says []string
	}{
		{services["github"], wire.Config{}, []string{"providers.github.token", "GITHUB_TOKEN"}},
		{services["azure"], wire.Config{APIKey: "k", Model: "d"}, []string{"providers.azure.endpoint"}},
		{services["azure"], wire.Config{APIKey: "k", BaseURL: "https://r.openai.azure.com"}, []string{"providers.azure.deployment"}},
		{services["azure"], wire.Config{BaseURL: "r.openai.azure.com", Model: "d", APIKey: "k"}, []string{"providers.azure.endpoint is not a URL"}},
		{services["azure"], wire.Config{BaseURL: "https://r.openai.azure.com", Model: "d"}, []string{"providers.azure.apiKey", "AZURE_OPENAI_API_KEY"}},
		{services["foundry"], wire.Config{APIKey: "k"}, []string{"providers.foundry.projectEndpoint", "mode to local"}},
		{services["foundry"], wire.Config{BaseURL: "https://r.services.ai.azure.com"}, []string{"AZURE_FOUNDRY_API_KEY"}},
	} {
		_, err := test.open(test.cfg)
		for _, want := range test.says {
			if model.AsError(err).Code != model.CodeNotConfigured || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", test.cfg, err, want)
			}
		}
	}
}

func TestServicesErrors(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		code   model.ErrorCode
	}{
		{401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, model.CodeAuthentication},
		{404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, model.CodeModelNotFound},
		{429, `{"error":{"code":"429","message":"Requests have exceeded call rate limit"}}`, model.CodeRateLimited},
		{400, `{"error":{"code":"content_filter","message":"The response was filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, model.CodeInvalidRequest},
		{413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o-mini model. Max size: 8000 tokens."}}`, model.CodeContextLength},
		{400, `{"error":{"code":"unknown_model","message":"Unknown model: x"}}`, model.CodeModelNotFound},
	} {
		p, err := services["azure"](wire.Config{BaseURL: "https://r.openai.azure.com", Model: "d", APIKey: "key-123", Transport: modeltest.Canned(test.status, test.body)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.Complete(t.Context(), p, user("hi")); model.AsError(err).Code != test.code {
			t.Errorf("%d %s: %v", test.status, test.body, err)
		}
	}
}

func TestServicesModels(t *testing.T) {
	p, err := services["github"](wire.Config{APIKey: "ghp_1", Transport: modeltest.RoundTrip(func(r *http.Request) *http.Response {
		if r.URL.String() != "https://models.github.ai/catalog/models" {
			t.Errorf("asked %s", r.URL)
		}
		resp := modeltest.Canned(200, `[{"id":"openai/gpt-4o-mini","publisher":"OpenAI"},{"id":"meta/llama"}]`)(r)
		resp.Header.Set("Content-Type", "application/json")
		return resp
	})})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := model.ListModels(t.Context(), p); err != nil || !slices.Equal(got, []string{"openai/gpt-4o-mini", "meta/llama"}) {
		t.Errorf("models %q, %v", got, err)
	}
	for _, name := range []string{"azure", "foundry"} {
		p, err := services[name](wire.Config{BaseURL: "https://r.openai.azure.com", Model: "d", APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.ListModels(t.Context(), p); model.AsError(err).Code != model.CodeNotSupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAlias requests a model of Foundry Local by its alias.
func TestAlias(t *testing.T) {
	chat := modeltest.NewChat(modeltest.Turn{Text: []string{"ok"}}, modeltest.Turn{Text: []string{"ok"}})
	chat.Models = []string{"qwen2.5-0.5b", "Phi-4-generic-gpu", "Phi-4-mini-generic-gpu"}
	p, err := langchain.FoundryLocal(wire.Config{BaseURL: chat.Serve(t)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := model.Complete(t.Context(), p, user("hi")); err != nil {
			t.Fatal(err)
		}
	}
	if got := chat.Requests()[1].Model; got != "Phi-4-generic-gpu" {
		t.Errorf("the alias phi-4 is %q", got)
	}
}
