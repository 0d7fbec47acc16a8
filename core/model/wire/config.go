package wire

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// The defaults of [Config].
const (
	DefaultConnectTimeout   = 10 * time.Second
	DefaultFirstByteTimeout = 2 * time.Minute
	DefaultIdleTimeout      = 3 * time.Minute
	DefaultTotalTimeout     = 30 * time.Minute
)

// Config is the configuration of a service. The environment is not read; the
// caller has done that.
type Config struct {
	Name    string // of the provider in the settings
	BaseURL string // including the version, such as http://localhost:11434/v1
	APIKey  string
	Model   string // for requests that name none
	Headers map[string]string
	Names   Names
	// Token returns the credential if there is no APIKey, such as the short-lived
	// token of a cloud. It is called for every request, must be safe for
	// concurrent use, and should cache.
	Token func(ctx context.Context) (string, error)
	// Transport may be shared; the caller closes it. If it is nil, the provider
	// has its own, with the proxies of the environment.
	Transport http.RoundTripper

	// Zero means the default, a negative value means no limit.
	ConnectTimeout   time.Duration // of the provider's own transport
	FirstByteTimeout time.Duration // from the start of a request to the response header
	IdleTimeout      time.Duration // between any two bytes of the answer
	TotalTimeout     time.Duration // from the start of a request to the end of the answer
}

// Names are the names of settings below providers.NAME, for messages. The
// defaults are apiKey, baseUrl and model.
type Names struct{ APIKey, BaseURL, Model string }

// of returns the dotted keys of a provider's settings.
func (n Names) of(provider string) Names {
	prefix := "providers." + provider + "."
	return Names{
		APIKey: prefix + cmp.Or(n.APIKey, "apiKey"), BaseURL: prefix + cmp.Or(n.BaseURL, "baseUrl"), Model: prefix + cmp.Or(n.Model, "model"),
	}
}

// Default sets the name, base URL and model if they are empty.
func (c *Config) Default(name, baseURL, model string) {
	c.Name = cmp.Or(c.Name, name)
	c.BaseURL = cmp.Or(c.BaseURL, baseURL)
	c.Model = cmp.Or(c.Model, model)
}

// NeedKey returns an error with CodeNotConfigured if there is neither a key nor
// a token. It names the environment variable that the key can be set by.
func (c *Config) NeedKey(variable string) error {
	if strings.TrimSpace(c.APIKey) != "" || c.Token != nil {
		return nil
	}
	return notConfigured(c.Name, fmt.Sprintf(
		"no API key: set %s in the settings or the variable %s (`agent config path` lists the settings files)", c.Names.of(c.Name).APIKey, variable))
}

// Dialect is what differs between services. The zero Dialect sends the
// credential as a bearer token and reads the usual error bodies.
type Dialect struct {
	Header http.Header // sent with every request
	// Authorize sets the header for the credential, which is never empty.
	Authorize func(h http.Header, credential string)
	// Fault parses the body of an error response or, with status 0, an error
	// event. The default is [ParseFault].
	Fault func(status int, body []byte) Fault
}

func parseBaseURL(cfg Config) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(cfg.BaseURL))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// The value may contain a password, so it is not repeated.
		return nil, notConfigured(cfg.Name, fmt.Sprintf(
			"%s is not a URL such as https://models.example.com/v1 (`agent config path` lists the settings files)", cfg.Names.of(cfg.Name).BaseURL))
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/" // or paths joined to it would be relative
	}
	return u, nil
}

// endpoint returns the URL without parts that may be secret.
func endpoint(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	return shown.String()
}

// secretValues returns the texts that must not appear in an error.
func secretValues(cfg Config, base *url.URL) []string {
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
	return list
}

// secrets removes secrets from texts. It is safe for concurrent use.
type secrets struct {
	mu   sync.RWMutex
	list []string
}

func newSecrets(list []string) *secrets {
	s := &secrets{}
	for _, text := range list {
		s.add(text)
	}
	return s
}

// add adds a secret. Short ones are ignored, as they would garble messages; of
// many tokens, the latest are kept.
func (s *secrets) add(text string) {
	const minLength, maxSecrets = 6, 32
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) < minLength || slices.Contains(s.list, text) {
		return
	}
	s.list = append(s.list, text)
	if len(s.list) > maxSecrets {
		s.list = slices.Delete(s.list, maxSecrets/2, maxSecrets/2+1)
	}
}

// hide replaces the secrets in a text.
func (s *secrets) hide(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, secret := range s.list {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}

// NewTransport returns the default transport of providers, with the proxies of
// the environment and a limit on the time to connect.
func NewTransport(connect time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     90 * time.Second,
	}
}

// timeout replaces 0 by the default and a negative value by no limit.
func timeout(d *time.Duration, def time.Duration) {
	switch {
	case *d == 0:
		*d = def
	case *d < 0:
		*d = math.MaxInt64
	}
}

// known returns 0 for no limit.
func known(d time.Duration) time.Duration {
	if d == math.MaxInt64 {
		return 0
	}
	return d
}

func notConfigured(name, message string) *model.Error {
	return &model.Error{Code: model.CodeNotConfigured, Provider: name, Message: message}
}
