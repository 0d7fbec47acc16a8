package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

// Transcript is a server that answers requests with given streams, for tests that
// write out the answers of a protocol. It is safe for concurrent use.
type Transcript struct {
	mu       sync.Mutex
	answers  []string
	requests []Recorded
}

// Recorded is a request that a Transcript received.
type Recorded struct {
	Method, Path string // the path with its query
	Header       http.Header
	Body         string
}

// NewTranscript returns a server that answers with the streams in order, and
// with status 500 when there is none left.
func NewTranscript(streams ...string) *Transcript { return &Transcript{answers: streams} }

// Serve starts the server for the length of a test. It returns the server's
// address, and a transport for its requests.
func (s *Transcript) Serve(tb testing.TB) (url string, transport http.RoundTripper) {
	tb.Helper()
	web := httptest.NewServer(s)
	own := &http.Transport{}
	tb.Cleanup(func() {
		own.CloseIdleConnections()
		web.Close()
	})
	return web.URL, own
}

// Requests returns the requests so far.
func (s *Transcript) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP implements [http.Handler].
func (s *Transcript) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete body shows in the test
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Recorded{r.Method, r.URL.RequestURI(), r.Header.Clone(), string(body)})
	if len(s.answers) == 0 {
		http.Error(w, `{"error":{"message":"the transcript has no answer left"}}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, s.answers[0]) // the client may be gone
	s.answers = s.answers[1:]
}

// Events returns JSON objects as server-sent events. The type of an event is the
// "type" of its object, if there is one.
func Events(objects ...string) string {
	var b strings.Builder
	for _, o := range objects {
		var head struct{ Type string }
		if err := json.Unmarshal([]byte(o), &head); err != nil {
			panic(fmt.Sprintf("modeltest: %v in %s", err, o)) // of the test's own text
		}
		if head.Type != "" {
			fmt.Fprintf(&b, "event: %s\n", head.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", o)
	}
	return b.String()
}

// RoundTrip is a function as an [http.RoundTripper].
type RoundTrip func(*http.Request) *http.Response

// RoundTrip implements [http.RoundTripper].
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return f(r), nil
}

// Canned answers every request with the same body, as JSON if it begins with "{",
// otherwise as a stream.
func Canned(status int, body string) RoundTrip {
	return func(r *http.Request) *http.Response {
		kind := "text/event-stream"
		if strings.HasPrefix(body, "{") {
			kind = "application/json"
		}
		h := http.Header{"Content-Type": {kind}}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}
	}
}

// TestCuts cuts a stream off at every byte. An answer must result only if nothing
// is missing after the data of the last event, otherwise an error.
func TestCuts(t *testing.T, stream string, open func(http.RoundTripper) model.Provider) {
	t.Helper()
	whole := len(strings.TrimRight(stream, "\n"))
	for i := range len(stream) + 1 {
		resp, err := model.Complete(t.Context(), open(Canned(http.StatusOK, stream[:i])), hello())
		if i >= whole {
			if err != nil {
				t.Fatalf("cut at %d of %d: %v", i, len(stream), err)
			}
			continue
		}
		var e *model.Error
		if !errors.As(err, &e) || e.Code != model.CodeNetwork && e.Code != model.CodeInvalidResponse {
			t.Fatalf("cut at %d of %d, after %q: %+v, %v", i, len(stream), stream[max(0, i-60):i], resp, err)
		}
	}
}
