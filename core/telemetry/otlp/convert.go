package otlp

import (
	"context"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// readOnly returns a span in the form that exporters take.
func (e *Exporter) readOnly(s *telemetry.Span) sdktrace.ReadOnlySpan {
	stub := tracetest.SpanStub{
		Name: s.Name, SpanContext: e.spanContext(s.Trace, s.ID), SpanKind: trace.SpanKindInternal, StartTime: s.Start, EndTime: s.End,
		Attributes: attributes(s.Attributes), Resource: e.resource, InstrumentationScope: e.scope,
	}
	if s.Kind == telemetry.KindChat {
		stub.SpanKind = trace.SpanKindClient
	}
	if s.Parent != "" {
		stub.Parent = e.spanContext(s.Trace, s.Parent)
	}
	if s.Link != nil {
		stub.Links = []sdktrace.Link{{SpanContext: e.spanContext(s.Link.Trace, s.Link.ID)}}
	}
	if s.Error != "" {
		stub.Status = sdktrace.Status{Code: codes.Error, Description: e.content(s.Message)}
	}
	for _, m := range s.Moments {
		stub.Events = append(stub.Events, sdktrace.Event{Name: m.Name, Time: m.Time, Attributes: attributes(m.Attributes)})
	}
	for _, c := range s.Content {
		if text, ok := c.Value.(string); ok && text != "" {
			stub.Attributes = append(stub.Attributes, attribute.String(c.Key, e.content(text)))
		}
	}
	return stub.Snapshot()
}

func (e *Exporter) spanContext(traceID, spanID string) trace.SpanContext {
	cfg := trace.SpanContextConfig{}
	cfg.TraceID, _ = trace.TraceIDFromHex(traceID) // an ID that is not valid is none
	cfg.SpanID, _ = trace.SpanIDFromHex(spanID)
	if e.Sampled(traceID) {
		cfg.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(cfg)
}

func attributes(list []telemetry.Attr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(list))
	for _, a := range list {
		key := attribute.Key(a.Key)
		switch v := a.Value.(type) {
		case string:
			out = append(out, key.String(v))
		case int64:
			out = append(out, key.Int64(v))
		case float64:
			out = append(out, key.Float64(v))
		case bool:
			out = append(out, key.Bool(v))
		case []string:
			out = append(out, key.StringSlice(v))
		}
	}
	return out
}

func scopeOptions(s instrumentation.Scope) []metric.MeterOption {
	return []metric.MeterOption{metric.WithInstrumentationVersion(s.Version), metric.WithSchemaURL(s.SchemaURL)}
}

// log sends an event as a log record.
func (e *Exporter) log(ev event.Event, at tracecontext.Span) {
	var r log.Record
	r.SetTimestamp(ev.Time)
	r.SetObservedTimestamp(time.Now())
	r.SetEventName("agent." + ev.Body.Type())
	r.SetSeverity(severity(ev.Body))
	r.AddAttributes(attribute.String("gen_ai.conversation.id", ev.Session), attribute.Int64("agent.event.seq", int64(ev.Seq)))
	if ev.Call != "" {
		r.AddAttributes(attribute.String("gen_ai.tool.call.id", ev.Call))
	}
	switch b := ev.Body.(type) {
	case event.Warning:
		r.AddAttributes(attribute.String("error.type", b.Code))
	case event.Error:
		r.AddAttributes(attribute.String("error.type", b.Code))
	case event.ToolUse:
		r.AddAttributes(attribute.String("gen_ai.tool.name", b.Name))
	}
	if e.opts.Content {
		if text, err := json.Marshal(ev.Recorded()); err == nil {
			r.SetBody(attribute.StringValue(e.content(string(text))))
		}
	}
	ctx := context.Background()
	if at.ID != "" {
		ctx = trace.ContextWithSpanContext(ctx, e.spanContext(at.Trace, at.ID))
	}
	e.logs.Logger(e.scope.Name, log.WithInstrumentationVersion(e.scope.Version), log.WithSchemaURL(e.scope.SchemaURL)).Emit(ctx, r)
}

func severity(b event.Body) log.Severity {
	switch b := b.(type) {
	case event.Error:
		return log.SeverityError
	case event.Warning, event.LLMRetry, event.LoopDetection, event.TurnLimit, event.TokenLimit:
		return log.SeverityWarn
	case event.ToolResult:
		if b.IsError {
			return log.SeverityWarn
		}
	}
	return log.SeverityInfo
}
