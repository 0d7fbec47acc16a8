package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/model"
)

// Endpoint is the server for a provider under test.
type Endpoint struct {
	URL, Key, Model string
	Transport       http.RoundTripper // for all requests
	Idle            time.Duration     // the idle time-out; 0 means the provider's default
}

// Factory returns a provider for an endpoint.
type Factory func(tb testing.TB, e Endpoint) model.Provider

// Option changes what [TestProvider] checks.
type Option func(*suite)

// Over selects the API of the providers. The default is [ChatCompletions].
func Over(api API) Option { return func(s *suite) { s.api = api } }

// TestProvider checks that the providers of a factory satisfy the contract of
// [model.Provider] and send the complete request.
func TestProvider(t *testing.T, factory Factory, options ...Option) {
	s := newSuite(t, factory, options)
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			s.tb = t
			for _, p := range s.run(t.Context(), c) {
				t.Error(p)
			}
		})
	}
}

// check is one check of the contract.
type check struct {
	name string
	run  func(*rig)
	slow bool
}

// checks begin with those that find the most.
var checks = []check{
	{"Text", (*rig).checkText, false},
	{"Info", (*rig).checkInfo, false},
	{"Calls", (*rig).checkCalls, false},
	{"StopReasons", (*rig).checkStopReasons, false},
	{"Usage", (*rig).checkUsage, false},
	{"OddUsage", (*rig).checkOddUsage, false},
	{"Wire", (*rig).checkWire, false},
	{"Results", (*rig).checkResults, false},
	{"Images", (*rig).checkImages, false},
	{"State", (*rig).checkState, false},
	{"Switch", (*rig).checkSwitch, false},
	{"Faults", (*rig).checkFaults, false},
	{"RetryAfter", (*rig).checkRetryAfter, false},
	{"Retry", (*rig).checkRetry, false},
	{"BreakAfterFirst", (*rig).checkBreakAfterFirst, true},
	{"SequenceCanBeRepeated", (*rig).checkRepeat, false},
	{"RequestUnchanged", (*rig).checkRequestUnchanged, false},
	{"StablePrefix", (*rig).checkPrefix, false},
	{"Models", (*rig).checkModels, false},
	{"Tolerated", (*rig).checkTolerated, true},
	{"NoServer", (*rig).checkNoServer, true},
	{"IdleTimeout", (*rig).checkIdle, true},
	{"CutAnywhere", (*rig).checkCutAnywhere, true},
	{"CutOverHTTP", (*rig).checkCutOverHTTP, true},
	{"CancelAnywhere", (*rig).checkCancelAnywhere, true},
	{"CancelWhileWaiting", (*rig).checkCancelWhileWaiting, true},
	{"CancelAtRandom", (*rig).checkCancelAtRandom, true},
	{"Deadline", (*rig).checkDeadline, true},
	{"BreakAnywhere", (*rig).checkBreakAnywhere, true},
	{"Concurrent", (*rig).checkConcurrent, true},
}

// suite is what all checks share.
type suite struct {
	tb      testing.TB
	factory Factory
	api     API
	traits  traits
	first   bool // checks end with their first problem
}

func newSuite(tb testing.TB, factory Factory, options []Option) *suite {
	s := &suite{tb: tb, factory: factory}
	for _, o := range options {
		o(s)
	}
	s.traits = s.api.traits()
	return s
}

// run runs a check and returns the problems that it finds.
func (s *suite) run(ctx context.Context, c check) []string {
	r := &rig{suite: s, ctx: ctx, name: c.name, problems: new([]string)}
	r.guarded(c.run)
	return *r.problems
}

// secret is the key of every provider under test. It must not appear in any
// error.
const secret = "sk-test-5f1d0c9be7a24e6c" //nolint:gosec // of a fake server

// rig is a running check: its problems, and the server and the provider that it
// started last.
type rig struct {
	*suite
	ctx      context.Context
	name     string
	problems *[]string
	cleanups []func()
	server   *Server
	endpoint Endpoint
	provider model.Provider
}

// aborted is the panic that ends a check early.
type aborted struct{}

// Errorf notes a problem.
func (r *rig) Errorf(format string, args ...any) {
	r.note(format, args...)
	if r.first {
		panic(aborted{})
	}
}

func (r *rig) note(format string, args ...any) {
	*r.problems = append(*r.problems, r.name+": "+fmt.Sprintf(format, args...))
}

// Fatalf notes a problem and ends the check.
func (r *rig) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(aborted{})
}

// guarded runs f, cleans up, and checks that no goroutine is left.
func (r *rig) guarded(f func(*rig)) {
	before := goleak.IgnoreCurrent()
	defer func() {
		for _, c := range slices.Backward(r.cleanups) {
			c()
		}
		if err := goleak.Find(before); err != nil {
			r.note("leaked goroutines: %v", err)
		}
	}()
	defer func() {
		switch p := recover(); p.(type) {
		case nil, aborted:
		default:
			panic(p)
		}
	}()
	f(r)
}

// sub runs a sub-check.
func (r *rig) sub(name string, f func(*rig)) {
	if r.first && len(*r.problems) > 0 {
		return
	}
	part := &rig{suite: r.suite, ctx: r.ctx, name: r.name + "/" + name, problems: r.problems}
	part.guarded(f)
}

// start starts a server that answers with the turns, and a provider for it.
func (r *rig) start(turns ...Turn) { r.use(New(r.api, turns...), 0) }

// always starts a server that always answers with the turn.
func (r *rig) always(turn Turn) { r.use(NewFunc(r.api, func(*Request) Turn { return turn }), 0) }

func (r *rig) use(server *Server, idle time.Duration) {
	server.Key = secret
	address, stop, err := server.Start()
	if err != nil {
		r.Fatalf("%v", err)
	}
	r.cleanups = append(r.cleanups, stop)
	transport := &http.Transport{}
	r.cleanups = append(r.cleanups, transport.CloseIdleConnections)
	r.server = server
	r.endpoint = Endpoint{URL: address, Key: secret, Model: r.traits.model, Transport: transport, Idle: idle}
	r.provider = r.factory(r.tb, r.endpoint)
}

// hello is a small request.
func hello() *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("hello")}}}
}

// complete streams req and checks the order of the deltas.
func (r *rig) complete(ctx context.Context, req *model.Request) (*model.Response, error) {
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
		r.Errorf("the sequence ended with neither a DeltaDone nor an error")
	}
	return g.Response()
}

// must is complete for a request that must succeed.
func (r *rig) must(req *model.Request) *model.Response {
	resp, err := r.complete(r.ctx, req)
	if err != nil {
		r.Fatalf("Stream: %v", err)
	}
	return resp
}

// parsed sends the request and returns it as the server parsed it.
func (r *rig) parsed(req *model.Request) *Parsed {
	r.start(Turn{Text: []string{"ok"}})
	r.must(req)
	return &r.server.Requests()[0].Parsed
}

// mustFail is complete for a request that must fail.
func (r *rig) mustFail(ctx context.Context, req *model.Request) *model.Error {
	resp, err := r.complete(ctx, req)
	return r.checkError(resp, err)
}

// checkError checks that err is a typed error without a secret.
func (r *rig) checkError(resp *model.Response, err error) *model.Error {
	if err == nil {
		r.Fatalf("no error, but the response %+v", resp)
	}
	var e *model.Error
	if !errors.As(err, &e) {
		r.Fatalf("error %T is not a *model.Error: %v", err, err)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if strings.Contains(cause.Error(), secret) {
			r.Errorf("the error contains the key: %v", cause)
		}
	}
	if e.Provider != r.provider.Info().Name {
		r.Errorf("the error names provider %q, not %q", e.Provider, r.provider.Info().Name)
	}
	return e
}

// order checks the order of a sequence of deltas.
type order struct {
	over  bool
	calls map[int]string // "open" or "ended" by index
}

// next returns the problem with the next element of the sequence, or "".
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
	case model.DeltaPart:
		if d.Part == nil {
			return "a DeltaPart without its part"
		}
	case model.DeltaUsage:
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

// clone returns a deep copy of a request, without the data of images.
func (r *rig) clone(req *model.Request) *model.Request {
	raw, err := json.Marshal(req)
	if err != nil {
		r.Fatalf("%v", err)
	}
	var c model.Request
	if err := json.Unmarshal(raw, &c); err != nil {
		r.Fatalf("%v", err)
	}
	return &c
}

// shown returns the parts that do not depend on the API, without the signatures of
// reasoning and without private state.
func shown(parts model.Parts) model.Parts {
	var out model.Parts
	for _, p := range parts {
		switch part := p.(type) {
		case model.Opaque:
			continue
		case model.Reasoning:
			if p = (model.Reasoning{Text: part.Text}); part.Text == "" {
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// frameWith returns the index of the first frame of the streamed turn that
// contains a text.
func (r *rig) frameWith(t Turn, text string) int {
	i := slices.IndexFunc(t.streamed(r.api, r.traits.model), func(f string) bool { return strings.Contains(f, text) })
	return max(i, 0)
}
