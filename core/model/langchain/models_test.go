package langchain_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// models lists the models of a provider with that configuration.
func models(ctx context.Context, t *testing.T, cfg wire.Config) ([]string, error) {
	t.Helper()
	if cfg.Transport == nil {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		cfg.Transport = transport
	}
	p, err := langchain.Local(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return model.ListModels(ctx, p)
}

func TestModels(t *testing.T) {
	chat := modeltest.NewChat()
	chat.Key, chat.Models = "sk-the-key", []string{"b", "a", "b"}
	url := chat.Serve(t)
	got, err := models(t.Context(), t, wire.Config{BaseURL: url, APIKey: "sk-the-key"})
	if want := []string{"b", "a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("models %q, %v; want %q", got, err, want)
	}
	if _, err := models(t.Context(), t, wire.Config{BaseURL: url}); model.AsError(err).Code != model.CodeAuthentication {
		t.Errorf("without the key: %v", err)
	}
	if n := len(chat.Requests()); n != 0 {
		t.Errorf("%d requests for completions", n)
	}
}

func TestModelsAnswers(t *testing.T) {
	const secret = "sk-the-key"
	for _, test := range []struct {
		name, kind, body string
		status           int
		want             []string
		code             model.ErrorCode // "" for no error
		message          string
	}{
		{name: "null", body: `{"object":"list","data":null}`, want: []string{}},
		{name: "extra members and no names", body: `{"data":[{"id":"m","x":{}},{"id":""},{}]}`, want: []string{"m"}},
		{name: "control characters", body: `{"data":[{"id":"m\u001b[31m"}]}`, want: []string{"m [31m"}},
		{name: "no list", body: `{"models":[]}`, code: model.CodeInvalidResponse, message: `it has no "data"`},
		{name: "an object for a list", body: `{"data":{}}`, code: model.CodeInvalidResponse, message: "not a list of models"},
		{name: "no JSON", body: `[`, code: model.CodeInvalidResponse, message: "invalid response"},
		{name: "a web page", kind: "text/html", body: "<html>", code: model.CodeInvalidResponse, message: "is providers.local.baseUrl right?"},
		{name: "wrong path", status: 404, body: "404 page not found", code: model.CodeNotConfigured, message: "has no /models: check providers.local.baseUrl"},
		{name: "no such path", status: 404, body: `{"error":"nope"}`, code: model.CodeNotConfigured, message: "has no /models"},
		{name: "a redirect", status: 302, code: model.CodeNotConfigured, message: "redirects to another URL"},
		{name: "a key repeated", status: 401, body: `{"error":"bad key ` + secret + `"}`, code: model.CodeAuthentication, message: "bad key [redacted]"},
		{name: "overload", status: 503, code: model.CodeNetwork, message: "Service Unavailable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+secret {
					t.Errorf("request %s %s %v", r.Method, r.URL, r.Header)
				}
				w.Header().Set("Content-Type", max(test.kind, "application/json"))
				w.Header().Set("Location", "http://elsewhere.invalid/")
				w.WriteHeader(max(test.status, http.StatusOK))
				_, _ = w.Write([]byte(test.body))
			}))
			t.Cleanup(server.Close)
			got, err := models(t.Context(), t, wire.Config{BaseURL: server.URL + "/v1/", APIKey: secret})
			if test.code == "" {
				if err != nil || !slices.Equal(got, test.want) {
					t.Errorf("models %q, %v; want %q", got, err, test.want)
				}
				return
			}
			if e := model.AsError(err); e == nil || e.Code != test.code || !strings.Contains(e.Error(), test.message) {
				t.Errorf("error %v, want %s with %q", err, test.code, test.message)
			}
		})
	}
}

// TestBareHost checks that a base URL needs no path.
func TestBareHost(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.RequestURI)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	p, err := langchain.Local(wire.Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, listErr := model.ListModels(t.Context(), p)
	_, chatErr := model.Complete(t.Context(), p, user("hi"))
	if want := []string{"/models", "/chat/completions"}; !slices.Equal(paths, want) {
		t.Errorf("paths %q, want %q (%v, %v)", paths, want, listErr, chatErr)
	}
}

// TestModelsEnd checks how the wait for a response can end.
func TestModelsEnd(t *testing.T) {
	hang := func(begin bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if begin {
				_, _ = w.Write([]byte(`{"data":[`))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}
	}
	for name, begin := range map[string]bool{"no first byte": false, "nothing more": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(hang(begin))
			t.Cleanup(server.Close)
			_, err := models(t.Context(), t, wire.Config{BaseURL: server.URL, FirstByteTimeout: 50 * time.Millisecond, IdleTimeout: 50 * time.Millisecond})
			if model.AsError(err).Code != model.CodeTimeout {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			hang(false)(w, r)
		}))
		t.Cleanup(server.Close)
		if _, err := models(ctx, t, wire.Config{BaseURL: server.URL}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if _, err := models(ctx, t, wire.Config{BaseURL: server.URL}); !errors.Is(err, context.Canceled) {
			t.Errorf("begun cancelled: %v", err)
		}
	})
}

// silentPort returns a local address where nothing listens.
func silentPort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// TestRefused checks that only a local refusal is permanent: a remote one may be
// temporary.
func TestRefused(t *testing.T) {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	elsewhere := roundTrip(func(r *http.Request) (*http.Response, error) {
		_, err := transport.RoundTrip(r)
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			op.Addr = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}
		}
		return nil, err
	})
	for name, test := range map[string]struct {
		transport http.RoundTripper
		permanent bool
	}{"this machine": {transport, true}, "another": {elsewhere, false}} {
		t.Run(name, func(t *testing.T) {
			p, err := langchain.Local(wire.Config{BaseURL: "http://" + silentPort(t) + "/v1", Transport: test.transport})
			if err != nil {
				t.Fatal(err)
			}
			_, err = model.Complete(t.Context(), p, user("hi"))
			e := model.AsError(err)
			if e.Code != model.CodeNetwork || e.Permanent != test.permanent || e.Retryable() == test.permanent {
				t.Errorf("%s, permanent %t: %v", e.Code, e.Permanent, err)
			}
		})
	}
}
