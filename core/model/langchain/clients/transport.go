package clients

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// placeholder stands for the key, which the transport adds.
const placeholder = "unused"

func asError(err error, target **model.Error) bool { return errors.As(err, target) }

// httpClient returns the HTTP client for a client that accepts one.
func (c *call) httpClient() *http.Client { return &http.Client{Transport: c} }

// RoundTrip implements [http.RoundTripper].
func (c *call) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if strings.HasSuffix(r.Header.Get("Authorization"), " "+placeholder) {
		r.Header.Del("Authorization")
	}
	if err := c.complete(r); err != nil {
		return nil, err
	}
	return c.relay.RoundTrip(r)
}

// complete corrects the body and adds the options, unchanged.
func (c *call) complete(r *http.Request) error {
	if len(c.options) == 0 && c.client.patch == nil {
		return nil
	}
	var fields map[string]json.RawMessage
	err := json.NewDecoder(r.Body).Decode(&fields)
	if err == nil && c.client.patch != nil {
		err = c.client.patch(c, fields)
	}
	if err != nil {
		return c.Wrap(model.CodeInvalidRequest, "langchaingo's request body is invalid", err)
	}
	var members []wire.Member
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		members = append(members, wire.Member{Name: name, Value: fields[name]})
	}
	body, err := wire.AppendMembers(nil, members, c.options)
	if err != nil {
		return c.Wrap(model.CodeInvalidRequest, "the provider options", err)
	}
	body = append(body, '}')
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return nil
}

// gateway is a model whose client accepts no transport: it gets the address of a
// server that passes its requests on.
type gateway struct {
	call *call
	open func(baseURL, key string) (llms.Model, error)
}

// Call implements [llms.Model].
func (g *gateway) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, g, prompt, options...)
}

// GenerateContent implements [llms.Model]. When ctx ends, the connection is
// closed: the client may not know ctx. For the same reason the client does not
// learn that its callback failed: it would leave a goroutine behind.
func (g *gateway) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	key := rand.Text()
	var serving sync.WaitGroup
	srv := &http.Server{Handler: g.handler(key, &serving), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: wire.DefaultConnectTimeout}
	serving.Go(func() { _ = srv.Serve(ln) }) // always http.ErrServerClosed
	defer serving.Wait()
	defer srv.Close()
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	llm, err := g.open("http://"+ln.Addr().String(), key)
	if err != nil {
		return nil, err
	}
	return llm.GenerateContent(ctx, messages, append(options, deaf)...)
}

// deaf keeps the errors of the callback from the client.
func deaf(o *llms.CallOptions) {
	if fn := o.StreamingFunc; fn != nil {
		o.StreamingFunc = func(ctx context.Context, chunk []byte) error {
			_ = fn(ctx, chunk) // the consumer stopped, which also ends the connection
			return nil
		}
	}
}

// handler passes requests with the key on to the service.
func (g *gateway) handler(key string, serving *sync.WaitGroup) http.Handler {
	c := g.call
	proxy := &httputil.ReverseProxy{
		Transport: c, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = c.URL(strings.TrimPrefix(r.In.URL.Path, "/v1"))
			r.Out.Host = r.Out.URL.Host
			r.Out.Header.Del("Authorization")
		},
		// The relay keeps the error. 400 is a status that no client retries.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadRequest) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// trimVersion returns the base URL without the version, for clients that add it.
func (c *call) trimVersion(version string) *url.URL {
	u := c.URL()
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), version)
	u.RawPath = ""
	return u
}
