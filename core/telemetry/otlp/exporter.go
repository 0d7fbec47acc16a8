package otlp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/redact"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// Options configure an [Exporter]. The standard variables of OpenTelemetry, such as
// OTEL_EXPORTER_OTLP_ENDPOINT, take precedence over them.
type Options struct {
	// Endpoint is the base URL of the collector; empty = this machine, at the
	// protocol's port.
	Endpoint string
	Protocol string            // "grpc" or "http/protobuf"; empty = grpc
	Headers  map[string]string // sent to Endpoint only
	// SampleRatio is the share of traces that is sent; nil = all.
	SampleRatio *float64
	Logs        bool // send the events, too
	// Content sends inputs, answers, arguments and results, without Secrets and what
	// looks like a key.
	Content bool
	Secrets []string
	Version string // of the program
	// Price returns the price of a model call in USD; false if unknown.
	Price func(provider, model string, u model.Usage) (float64, bool)
	// Warn gets at most one message: that the collector does not take what is sent.
	Warn func(message string)
	// Spans and Metrics are of a program that has its own OpenTelemetry: spans and
	// metrics go there, and nothing is sent to an endpoint.
	Spans   sdktrace.SpanProcessor
	Metrics MeterProvider
}

// MeterProvider is what is needed of a *metric.MeterProvider of OpenTelemetry's SDK. As
// an interface, it keeps that type's generic code out of each package that uses this one.
type MeterProvider interface {
	metric.MeterProvider
	ForceFlush(ctx context.Context) error
	Shutdown(ctx context.Context) error
}

// closeWithin limits Close.
const closeWithin = 2 * time.Second

// Exporter makes spans, metrics and logs from events and sends them. It is safe for
// concurrent use.
type Exporter struct {
	opts    Options
	target  target
	sampler *sampler
	redact  *redact.Redactor
	counts  counts
	numbers telemetry.Numbers
	warned  sync.Once
	// onWarning may have nothing.
	onWarning atomic.Pointer[func(string) bool]

	resource *resource.Resource
	scope    instrumentation.Scope
	spans    sdktrace.SpanProcessor // nil if spans are not sent
	meters   MeterProvider          // nil if metrics are not sent
	logs     *sdklog.LoggerProvider // nil if logs are not sent
	metrics  *instruments

	mu      sync.Mutex
	builder *telemetry.Builder
}

// counts are of spans.
type counts struct{ sent, failed, dropped, waiting atomic.Int64 }

// Stats say how the sending goes. The numbers are of spans.
type Stats struct {
	Endpoint string
	Protocol string
	Sent     int64
	Failed   int64 // that the collector did not take
	Dropped  int64 // because too many were waiting
	Waiting  int64
}

// Target returns where an exporter with these options would send to.
func Target(opts Options) (Stats, error) {
	t, err := findTarget(opts)
	return Stats{Endpoint: t.endpoint, Protocol: t.protocol}, err
}

// Open returns an exporter. It connects to nothing yet. The caller closes it.
func Open(ctx context.Context, opts Options) (*Exporter, error) {
	e := &Exporter{opts: opts, redact: redact.New(opts.Secrets)}
	var err error
	if e.target, err = findTarget(opts); err != nil {
		return nil, err
	}
	if e.sampler, err = newSampler(opts.SampleRatio); err != nil {
		return nil, err
	}
	e.scope = instrumentation.Scope{
		Name: "github.com/seed-009c0928/agent/core/telemetry", Version: opts.Version, SchemaURL: "https://opentelemetry.io/schemas/" + telemetry.Version,
	}
	e.resource, err = resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "agent"), attribute.String("service.version", opts.Version),
		attribute.String("service.instance.id", uuid.NewString()),
	), resource.WithFromEnv())
	if err != nil && e.resource == nil {
		return nil, fmt.Errorf("telemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("telemetry: %w", err), e.Close())
	}
	if e.meters != nil {
		if e.metrics, err = newInstruments(e.meters.Meter(e.scope.Name, scopeOptions(e.scope)...), e.numbers.Read); err != nil {
			return nil, errors.Join(fmt.Errorf("telemetry: %w", err), e.Close())
		}
	}
	e.builder = telemetry.NewBuilder(e.span)
	e.builder.Content = opts.Content
	return e, nil
}

// Event takes an event of a session. Those of one session come in their order.
func (e *Exporter) Event(ev event.Event) {
	if ev.IsDelta() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.builder.At(ev)
	e.builder.Add(ev)
	e.metrics.event(ev)
	if e.logs != nil {
		at := e.builder.At(ev)
		if before.ID != "" {
			at = before
		}
		e.log(ev, at)
	}
}

// Export sends spans of a session that has ended, without metrics. The error says how
// many could not be sent.
func (e *Exporter) Export(ctx context.Context, spans []*telemetry.Span) error {
	if e.spans == nil {
		return errors.New("telemetry: OTEL_TRACES_EXPORTER switches traces off")
	}
	for part := range slices.Chunk(spans, maxWaiting/2) {
		for _, s := range part {
			e.send(s)
		}
		if err := e.Flush(ctx); err != nil {
			return fmt.Errorf("telemetry cannot be sent to %s: %w", e.target.endpoint, err)
		}
	}
	if s := e.Stats(); s.Failed+s.Dropped > 0 {
		return fmt.Errorf("%d of %d spans could not be sent to %s", s.Failed+s.Dropped, len(spans), e.target.endpoint)
	}
	return nil
}

// span takes a span that has ended.
func (e *Exporter) span(s *telemetry.Span) {
	e.metrics.span(s, e.opts.Price)
	e.send(s)
}

func (e *Exporter) send(s *telemetry.Span) {
	if e.spans == nil || !e.Sampled(s.Trace) {
		return
	}
	if e.counts.waiting.Add(1) > maxWaiting {
		e.counts.waiting.Add(-1)
		e.counts.dropped.Add(1)
		return
	}
	e.spans.OnEnd(e.readOnly(s))
}

// Sampled reports whether a trace is sent.
func (e *Exporter) Sampled(trace string) bool { return e.sampler.sampled(trace) }

// Context returns the context in which to submit an input: its work belongs to the
// span of OpenTelemetry that ctx has, if any, and is handed on to other processes.
func (e *Exporter) Context(ctx context.Context) context.Context {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() && tracecontext.From(ctx) == (tracecontext.Span{}) {
		ctx = e.Below(ctx, tracecontext.Span{Trace: sc.TraceID().String(), ID: sc.SpanID().String()}, sc.IsSampled())
	}
	return tracecontext.Propagate(ctx, e.Sampled)
}

// Below returns a context whose work belongs to a span of another program, which is
// sampled or not.
func (e *Exporter) Below(ctx context.Context, s tracecontext.Span, sampled bool) context.Context {
	e.sampler.follow(s.Trace, sampled)
	return tracecontext.With(ctx, s)
}

// ToolContext returns the context of a tool with its span as the one of OpenTelemetry,
// so that what the tool does with instrumented libraries becomes part of the trace.
func (e *Exporter) ToolContext(ctx context.Context) context.Context {
	at := tracecontext.From(ctx)
	if at.ID == "" {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, e.spanContext(at.Trace, at.ID))
}

// Stats returns how the sending goes.
func (e *Exporter) Stats() Stats {
	c := &e.counts
	return Stats{Endpoint: e.target.endpoint, Protocol: e.target.protocol, Sent: c.sent.Load(), Failed: c.failed.Load(), Dropped: c.dropped.Load(), Waiting: c.waiting.Load()}
}

// OnWarning sets what gets the warning before [Options.Warn], and returns whether it
// shows it.
func (e *Exporter) OnWarning(show func(message string) bool) { e.onWarning.Store(&show) }

// Observe adds what returns numbers, such as agent.queue.inputs, until stop is called.
// It is called when metrics are sent, concurrently with anything else.
func (e *Exporter) Observe(read func() []telemetry.Number) (stop func()) {
	return e.numbers.Observe(read)
}

// Flush sends what waits. The error says what could not be sent.
func (e *Exporter) Flush(ctx context.Context) error {
	return e.each(ctx, func(ctx context.Context, p provider) error { return p.ForceFlush(ctx) })
}

// Close ends what is open, sends what waits, for two seconds at most, and warns if that
// was too short. It does not close the providers of a program.
func (e *Exporter) Close() error {
	e.mu.Lock()
	if e.builder != nil {
		e.builder.Close()
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if e.own() {
		return e.Flush(ctx)
	}
	err := e.each(ctx, func(ctx context.Context, p provider) error { return p.Shutdown(ctx) })
	if err != nil {
		e.warn(err)
	}
	return nil
}

func (e *Exporter) own() bool { return e.opts.Spans != nil || e.opts.Metrics != nil }

// provider is what spans, metrics and logs have in common.
type provider interface {
	ForceFlush(ctx context.Context) error
	Shutdown(ctx context.Context) error
}

// each calls f for all signals at once.
func (e *Exporter) each(ctx context.Context, f func(context.Context, provider) error) error {
	var list []provider
	if e.spans != nil {
		list = append(list, e.spans)
	}
	if e.meters != nil {
		list = append(list, e.meters)
	}
	if e.logs != nil {
		list = append(list, e.logs)
	}
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { errs[i] = f(ctx, p) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// warn tells once that the collector does not take what is sent.
func (e *Exporter) warn(err error) {
	e.warned.Do(func() {
		cause := err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			cause = "no answer"
		}
		text := fmt.Sprintf("telemetry cannot be sent to %s: %s", e.target.endpoint, e.clean(cut(cause, 300)))
		if show := e.onWarning.Load(); (show == nil || !(*show)(text)) && e.opts.Warn != nil {
			e.opts.Warn(text)
		}
	})
}

// maxContent limits the content in an attribute, in bytes.
const maxContent = 8 << 10

// content returns a text as it may be sent.
func (e *Exporter) content(text string) string {
	return cut(e.clean(cut(text, 8*maxContent)), maxContent)
}

// clean removes secrets.
func (e *Exporter) clean(text string) string {
	out, _ := e.redact.Text([]byte(text))
	return string(out)
}

// cut shortens a text to that many bytes.
func cut(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "") + mark
}
