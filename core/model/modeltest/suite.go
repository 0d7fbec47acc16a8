package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/model"
)

// Endpoint is the server that a provider under test must use.
type Endpoint struct {
	URL, Key, Model string
	Transport       http.RoundTripper // to be used for all requests
	Idle            time.Duration     // the idle time-out; 0 leaves it to the provider
}

// Factory makes a provider for an endpoint.
type Factory func(tb testing.TB, e Endpoint) model.Provider

// TestProvider checks that the providers of a factory keep the contract of
// [model.Provider] and say over the wire what the request says. The server is
// a [Chat].
func TestProvider(t *testing.T, factory Factory) {
	suite := &suite{factory}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Text", suite.testText},
		{"Info", suite.testInfo},
		{"SequenceCanBeRepeated", suite.testRepeat},
		{"Calls", suite.testCalls},
		{"StopReasons", suite.testStopReasons},
		{"Usage", suite.testUsage},
		{"Wire", suite.testWire},
		{"Results", suite.testResults},
		{"Images", suite.testImages},
		{"RequestUnchanged", suite.testRequestUnchanged},
		{"Tolerated", suite.testTolerated},
		{"Faults", suite.testFaults},
		{"RetryAfterDate", suite.testRetryAfterDate},
		{"NoServer", suite.testNoServer},
		{"IdleTimeout", suite.testIdle},
		{"CutAnywhere", suite.testCutAnywhere},
		{"CancelAnywhere", suite.testCancelAnywhere},
		{"CancelWhileWaiting", suite.testCancelWhileWaiting},
		{"Deadline", suite.testDeadline},
		{"BreakAnywhere", suite.testBreakAnywhere},
	} {
		t.Run(test.name, test.run)
	}
}

type suite struct{ factory Factory }

// secret is the key of every provider under test. It must not appear in any
// error.
const secret = "sk-test-5f1d0c9be7a24e6c" //nolint:gosec // of a fake server

const testModel = "gpt-test"

// rig is a server and a provider that uses it.
type rig struct {
	*testing.T
	chat     *Chat
	provider model.Provider
}

// start returns a rig whose server answers with the turns. When the test ends
// no goroutine may be left.
func (s *suite) start(t *testing.T, idle time.Duration, turns ...Turn) *rig {
	t.Helper()
	return s.startChat(t, idle, NewChat(turns...))
}

func (s *suite) startChat(t *testing.T, idle time.Duration, chat *Chat) *rig {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	chat.Key = secret
	url := chat.Serve(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &rig{t, chat, s.factory(t, Endpoint{URL: url, Key: secret, Model: testModel, Transport: transport, Idle: idle})}
}

// hello is a small request.
func hello() *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("hello")}}}
}

// complete streams req and checks the order of the deltas.
func (r *rig) complete(ctx context.Context, req *model.Request) (*model.Response, error) {
	r.Helper()
	var g model.Gatherer
	var check order
	for d, err := range r.provider.Stream(ctx, req) {
		if problem := check.next(d, err); problem != "" {
			r.Errorf("%s: delta %+v, error %v", problem, d, err)
		}
		if err != nil {
			return nil, err
		}
		g.Add(d)
	}
	if !check.over {
		r.Error("the sequence ended with neither a DeltaDone nor an error")
	}
	return g.Response()
}

// must is complete for an answer that has to arrive.
func (r *rig) must(req *model.Request) *model.Response {
	r.Helper()
	resp, err := r.complete(r.Context(), req)
	if err != nil {
		r.Fatalf("Stream: %v", err)
	}
	return resp
}

// mustFail is complete for an answer that must not arrive.
func (r *rig) mustFail(ctx context.Context, req *model.Request) *model.Error {
	r.Helper()
	resp, err := r.complete(ctx, req)
	return r.checkError(resp, err)
}

// checkError checks that err is a typed error without a secret.
func (r *rig) checkError(resp *model.Response, err error) *model.Error {
	r.Helper()
	if err == nil {
		r.Fatalf("no error, but the response %+v", resp)
	}
	var e *model.Error
	if !errors.As(err, &e) {
		r.Fatalf("error %T is no *model.Error: %v", err, err)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if strings.Contains(cause.Error(), secret) {
			r.Errorf("the error holds the key: %v", cause)
		}
	}
	if e.Provider != r.provider.Info().Name {
		r.Errorf("the error names provider %q, not %q", e.Provider, r.provider.Info().Name)
	}
	return e
}

// order checks the grammar of a sequence of deltas.
type order struct {
	over  bool
	calls map[int]string // "open" or "ended" by index
}

// next returns what is wrong with the next element of the sequence.
func (o *order) next(d model.Delta, err error) string {
	if o.over {
		return "something follows the end of the sequence"
	}
	if o.calls == nil {
		o.calls = map[int]string{}
	}
	if err != nil {
		o.over = true
		if !reflect.DeepEqual(d, model.Delta{}) {
			return "an error comes with a delta"
		}
		return ""
	}
	switch d.Kind {
	case model.DeltaToolStart:
		if o.calls[d.Index] != "" || d.ID == "" || d.Name == "" {
			return "a call starts twice, or without its id or name"
		}
		o.calls[d.Index] = "open"
	case model.DeltaToolArgs:
		if o.calls[d.Index] != "open" {
			return "arguments of a call that is not open"
		}
	case model.DeltaToolEnd:
		if o.calls[d.Index] != "open" {
			return "the end of a call that is not open"
		}
		o.calls[d.Index] = "ended"
	case model.DeltaText, model.DeltaReasoning:
		if d.Text == "" {
			return "an empty text"
		}
	case model.DeltaPart, model.DeltaUsage:
	case model.DeltaDone:
		o.over = true
		if d.Stop == "" {
			return "a DeltaDone without a stop reason"
		}
	default:
		return "an unexpected kind of delta"
	}
	return ""
}

// clone returns a deep copy of a request.
func clone(t *testing.T, req *model.Request) *model.Request {
	t.Helper()
	raw, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var c model.Request
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}
