package langchain

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// The defaults of [Config].
const (
	DefaultConnectTimeout   = 10 * time.Second
	DefaultFirstByteTimeout = 300 * time.Second
	DefaultIdleTimeout      = 300 * time.Second

	defaultLocalURL   = "http://localhost:11434/v1"
	defaultLocalModel = "llama3.3:latest"
	defaultOpenAIURL  = "https://api.openai.com/v1"
)

// Config says how to reach a server that speaks the Chat Completions API. The
// environment is never read; whoever fills the Config has done that.
type Config struct {
	Name    string // the settings' name of the provider; default "local" or "openai"
	BaseURL string // up to and including the version, such as http://localhost:11434/v1
	APIKey  string
	Model   string // for requests that name none
	Headers map[string]string
	// Transport is shared, and closed by whoever made it. Without one, the
	// provider has its own, with the proxies of the environment.
	Transport http.RoundTripper

	// Zero means the default, a negative value means no limit.
	ConnectTimeout   time.Duration // of the provider's own transport
	FirstByteTimeout time.Duration // from the start of a request to the answer's header
	IdleTimeout      time.Duration // between any two bytes of the answer
}

// Local returns a provider for an OpenAI-compatible server, by default the
// Ollama of this machine. It needs no key. The error is a *model.Error with
// CodeNotConfigured.
func Local(cfg Config) (model.Provider, error) {
	setDefault(&cfg.Name, "local")
	setDefault(&cfg.BaseURL, defaultLocalURL)
	setDefault(&cfg.Model, defaultLocalModel)
	return newChat(cfg, dialect{legacyMaxTokens: true, efforts: map[model.Effort]string{model.EffortXHigh: "high"}})
}

// OpenAI returns a provider for OpenAI's Chat Completions API. The error is a
// *model.Error with CodeNotConfigured, for example if there is no key.
func OpenAI(cfg Config) (model.Provider, error) {
	setDefault(&cfg.Name, "openai")
	setDefault(&cfg.BaseURL, defaultOpenAIURL)
	if strings.TrimSpace(cfg.APIKey) == "" {
		return nil, notConfigured(cfg.Name, fmt.Sprintf(
			"no API key: set providers.%s.apiKey in the settings or the variable OPENAI_API_KEY (`agent config path` shows where the settings are)", cfg.Name))
	}
	return newChat(cfg, dialect{})
}

// dialect is where servers of the same API differ.
type dialect struct {
	legacyMaxTokens bool                    // max_tokens instead of max_completion_tokens
	efforts         map[model.Effort]string // efforts under another name
}

func newChat(cfg Config, d dialect) (*chat, error) {
	base, err := parseBaseURL(cfg.Name, cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	cfg.APIKey = strings.TrimSpace(cfg.APIKey)
	if strings.ContainsFunc(cfg.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, notConfigured(cfg.Name, fmt.Sprintf("providers.%s.apiKey holds a character that no key has: was more than the key pasted?", cfg.Name))
	}
	timeout(&cfg.ConnectTimeout, DefaultConnectTimeout)
	timeout(&cfg.FirstByteTimeout, DefaultFirstByteTimeout)
	timeout(&cfg.IdleTimeout, DefaultIdleTimeout)
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg.ConnectTimeout)
	}
	p := &chat{
		cfg:     cfg,
		dialect: d,
		url:     base.JoinPath(chatPath),
		models:  base.JoinPath(modelsPath),
		info:    model.ProviderInfo{Name: cfg.Name, Model: cfg.Model, Endpoint: endpoint(base)},
		client: &http.Client{
			Transport: cfg.Transport,
			// A redirect would take the prompt and the key elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	p.faults = faults{info: p.info, secrets: secrets(cfg, base)}
	return p, nil
}

func parseBaseURL(name, raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// The text may hold a password, so it is not repeated.
		return nil, notConfigured(name, fmt.Sprintf(
			"providers.%s.baseUrl is not a URL such as %s (`agent config path` shows where the settings are)", name, defaultLocalURL))
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/" // or what is joined to it would be relative
	}
	return u, nil
}

// endpoint returns the URL without what may be secret in it.
func endpoint(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	return shown.String()
}

// secrets returns what must not appear in an error.
func secrets(cfg Config, base *url.URL) []string {
	list := []string{cfg.APIKey}
	if pw, ok := base.User.Password(); ok {
		list = append(list, pw)
	}
	for _, v := range cfg.Headers {
		list = append(list, v)
	}
	for _, values := range base.Query() {
		list = append(list, values...)
	}
	return notShort(list)
}

// notShort leaves out what is too short for a secret: replacing it would only
// garble messages.
func notShort(list []string) []string {
	const shortest = 6
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return len(s) < shortest })
}

func newTransport(connect time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     90 * time.Second,
	}
}

func setDefault(s *string, def string) {
	if *s == "" {
		*s = def
	}
}

// timeout replaces 0 by the default and a negative value by one that never
// passes.
func timeout(d *time.Duration, def time.Duration) {
	switch {
	case *d == 0:
		*d = def
	case *d < 0:
		*d = math.MaxInt64
	}
}

func notConfigured(name, message string) *model.Error {
	return &model.Error{Code: model.CodeNotConfigured, Provider: name, Message: message}
}
