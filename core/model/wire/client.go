package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/seed-009c0928/agent/core/model"
)

// Client is a client of one service. It is safe for concurrent use.
type Client struct {
	Faults

	cfg     Config
	dialect Dialect
	base    *url.URL
	http    *http.Client

	answered atomic.Bool // the server has responded before
}

// New returns a client. The error is a *model.Error with CodeNotConfigured for an
// invalid base URL or key.
func New(cfg Config, d Dialect) (*Client, error) {
	base, err := parseBaseURL(cfg)
	if err != nil {
		return nil, err
	}
	cfg.APIKey = strings.TrimSpace(cfg.APIKey)
	if !headerSafe(cfg.APIKey) {
		return nil, notConfigured(cfg.Name, cfg.Names.of(cfg.Name).APIKey+" contains characters that no key has: was more than the key pasted?")
	}
	timeout(&cfg.ConnectTimeout, DefaultConnectTimeout)
	timeout(&cfg.FirstByteTimeout, DefaultFirstByteTimeout)
	timeout(&cfg.IdleTimeout, DefaultIdleTimeout)
	timeout(&cfg.TotalTimeout, DefaultTotalTimeout)
	if cfg.Transport == nil {
		cfg.Transport = NewTransport(cfg.ConnectTimeout)
	}
	if d.Authorize == nil {
		d.Authorize = func(h http.Header, credential string) { h.Set("Authorization", "Bearer "+credential) }
	}
	if d.Fault == nil {
		d.Fault = func(_ int, body []byte) Fault { return ParseFault(body) }
	}
	info := model.ProviderInfo{
		Name: cfg.Name, Model: cfg.Model, Endpoint: endpoint(base),
		Timeouts: model.Timeouts{FirstByte: known(cfg.FirstByteTimeout), Idle: known(cfg.IdleTimeout), Total: known(cfg.TotalTimeout)},
	}
	return &Client{
		Faults: Faults{info: info, names: cfg.Names.of(cfg.Name), secrets: newSecrets(secretValues(cfg, base)), parse: d.Fault},
		cfg:    cfg, dialect: d, base: base,
		http: &http.Client{
			Transport: cfg.Transport,
			// A redirect could send the prompt and the key elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func headerSafe(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Info returns the name, default model and endpoint.
func (c *Client) Info() model.ProviderInfo { return c.info }

// Model returns the model of a request, by default the configured one. The error
// has CodeNotConfigured.
func (c *Client) Model(req *model.Request) (string, error) {
	if name := req.Model; name != "" {
		return name, nil
	}
	if c.info.Model == "" {
		return "", notConfigured(c.info.Name, "no model: set "+c.names.Model+" in the settings (`agent config path` lists the files) or pass --model")
	}
	return c.info.Model, nil
}

// URL returns a URL below the base URL, with its query.
func (c *Client) URL(path ...string) *url.URL { return c.base.JoinPath(path...) }

// Post is a request for a streamed answer.
type Post struct {
	URL    *url.URL
	Header http.Header // in addition to the client's own
	Body   []byte      // JSON
}

// request returns the HTTP request of a Post, with the exchange's context.
func (x *Exchange) request(p Post) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: p.URL, Host: p.URL.Host, Header: http.Header{},
		ContentLength: int64(len(p.Body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.Body)), nil },
	}
	r.Body, _ = r.GetBody()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for name, values := range p.Header {
		r.Header[name] = values
	}
	return r.WithContext(x.ctx)
}

// authorize sets the credential, and the headers of the dialect and the
// configuration.
func (c *Client) authorize(r *http.Request) error {
	for name, values := range c.dialect.Header {
		r.Header[name] = values
	}
	credential := c.cfg.APIKey
	if credential == "" && c.cfg.Token != nil {
		var err error
		if credential, err = c.cfg.Token(r.Context()); err != nil {
			if ended := c.Ended(r.Context()); ended != nil {
				return ended
			}
			var known *model.Error
			if errors.As(err, &known) {
				return err
			}
			return c.Wrap(model.CodeAuthentication, "cannot get a token", err)
		}
		if !headerSafe(credential) {
			return c.Wrap(model.CodeAuthentication, "the token contains characters that no token has", nil)
		}
	}
	if credential != "" {
		c.secrets.add(credential)
		c.dialect.Authorize(r.Header, credential)
	}
	for name, value := range c.cfg.Headers {
		r.Header.Set(name, value)
	}
	return nil
}

// maxJSON limits a response of GetJSON and PostJSON, in bytes.
const maxJSON = 8 << 20

// GetJSON decodes the JSON at u, such as the list of models, into v, within the
// same time limits as an answer. The error is a *model.Error.
func (c *Client) GetJSON(ctx context.Context, u *url.URL, v any) error {
	x := c.Exchange(ctx)
	defer x.Close()
	r := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{"Accept": {"application/json"}}}
	return x.json(r.WithContext(x.ctx), v)
}

// PostJSON is like GetJSON, for the answer to p, which is not streamed.
func (c *Client) PostJSON(ctx context.Context, p Post, v any) error {
	x := c.Exchange(ctx)
	defer x.Close()
	r := x.request(p)
	r.Header.Set("Accept", "application/json")
	return x.json(r, v)
}

// json sends a request and decodes the JSON of its response into v.
func (x *Exchange) json(r *http.Request, v any) error {
	c := x.client
	return x.roundTrip(r, func(resp *http.Response, body *watchedBody) error {
		if err := x.check(resp, body, r.URL); err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(body, maxJSON+1))
		if err != nil {
			return &brokenError{err}
		}
		if len(data) > maxJSON {
			return c.Invalid(fmt.Errorf("it is longer than %d MiB", maxJSON>>20))
		}
		if err := json.Unmarshal(data, v); err != nil {
			return c.Invalid(err)
		}
		return nil
	})
}
