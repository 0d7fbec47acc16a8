package otlp

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Bounds of the queue and of the repetition of what a collector did not take.
const (
	maxWaiting   = 2048
	retryAfter   = time.Second
	retryAtMost  = 4 * time.Second
	retryWithin  = 10 * time.Second
	batchTimeout = time.Second
)

// open opens the signals. OTEL_TRACES_EXPORTER=none and its like switch one off.
func (e *Exporter) open(ctx context.Context) error {
	if e.own() {
		e.spans, e.meters = e.opts.Spans, e.opts.Metrics
		return nil
	}
	if wanted("OTEL_TRACES_EXPORTER") {
		inner, err := e.traceExporter(ctx)
		if err != nil {
			return err
		}
		// What waits is counted before, so that the processor itself drops nothing.
		e.spans = sdktrace.NewBatchSpanProcessor(countingSpans{inner, e}, sdktrace.WithMaxQueueSize(maxWaiting+1), sdktrace.WithBatchTimeout(batchTimeout))
	}
	if wanted("OTEL_METRICS_EXPORTER") {
		inner, err := e.metricExporter(ctx)
		if err != nil {
			return err
		}
		e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithResource(e.resource), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(quietMetrics{inner, e})))
	}
	if e.opts.Logs && wanted("OTEL_LOGS_EXPORTER") {
		inner, err := e.logExporter(ctx)
		if err != nil {
			return err
		}
		e.logs = sdklog.NewLoggerProvider(sdklog.WithResource(e.resource), sdklog.WithProcessor(sdklog.NewBatchProcessor(quietLogs{inner, e})))
	}
	return nil
}

// wanted reports whether a variable that lists exporters leaves OTLP on.
func wanted(variable string) bool {
	list := os.Getenv(variable)
	return list == "" || slices.Contains(strings.Split(strings.ReplaceAll(list, " ", ""), ","), "otlp")
}

// over returns the protocol of a signal.
func (t target) over(signal string) string {
	if p := os.Getenv("OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL"); p == protocolGRPC || p == protocolHTTP {
		return p
	}
	return t.protocol
}

func (e *Exporter) traceExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if e.target.over("TRACES") == protocolHTTP {
		opts := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: retryAfter, MaxInterval: retryAtMost, MaxElapsedTime: retryWithin})}
		if !e.target.fromEnv {
			opts = append(opts, otlptracehttp.WithEndpointURL(e.target.endpoint+"/v1/traces"), otlptracehttp.WithHeaders(e.target.headers))
		}
		return otlptracehttp.New(ctx, opts...)
	}
	opts := []otlptracegrpc.Option{otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: retryAfter, MaxInterval: retryAtMost, MaxElapsedTime: retryWithin})}
	if !e.target.fromEnv {
		opts = append(opts, otlptracegrpc.WithEndpointURL(e.target.endpoint), otlptracegrpc.WithHeaders(e.target.headers))
	}
	return otlptracegrpc.New(ctx, opts...)
}

func (e *Exporter) metricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	if e.target.over("METRICS") == protocolHTTP {
		opts := []otlpmetrichttp.Option{otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: retryAfter, MaxInterval: retryAtMost, MaxElapsedTime: retryWithin})}
		if !e.target.fromEnv {
			opts = append(opts, otlpmetrichttp.WithEndpointURL(e.target.endpoint+"/v1/metrics"), otlpmetrichttp.WithHeaders(e.target.headers))
		}
		return otlpmetrichttp.New(ctx, opts...)
	}
	opts := []otlpmetricgrpc.Option{otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: true, InitialInterval: retryAfter, MaxInterval: retryAtMost, MaxElapsedTime: retryWithin})}
	if !e.target.fromEnv {
		opts = append(opts, otlpmetricgrpc.WithEndpointURL(e.target.endpoint), otlpmetricgrpc.WithHeaders(e.target.headers))
	}
	return otlpmetricgrpc.New(ctx, opts...)
}

func (e *Exporter) logExporter(ctx context.Context) (sdklog.Exporter, error) {
	if e.target.over("LOGS") == protocolHTTP {
		opts := []otlploghttp.Option{otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: true, InitialInterval: retryAfter, MaxInterval: retryAtMost, MaxElapsedTime: retryWithin})}
		if !e.target.fromEnv {
			opts = append(opts, otlploghttp.WithEndpointURL(e.target.endpoint+"/v1/logs"), otlploghttp.WithHeaders(e.target.headers))
		}
		return otlploghttp.New(ctx, opts...)
	}
	opts := []otlploggrpc.Option{otlploggrpc.WithRetry(otlploggrpc.RetryConfig{Enabled: true, InitialInterval: retryAfter, MaxInterval: retryAtMost, MaxElapsedTime: retryWithin})}
	if !e.target.fromEnv {
		opts = append(opts, otlploggrpc.WithEndpointURL(e.target.endpoint), otlploggrpc.WithHeaders(e.target.headers))
	}
	return otlploggrpc.New(ctx, opts...)
}

// countingSpans counts what is sent, and turns a failure into the one warning:
// OpenTelemetry would print each.
type countingSpans struct {
	sdktrace.SpanExporter
	e *Exporter
}

func (c countingSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	n := int64(len(spans))
	c.e.counts.waiting.Add(-n)
	if err != nil {
		c.e.counts.failed.Add(n)
		c.e.warn(err)
		return nil
	}
	c.e.counts.sent.Add(n)
	return nil
}

type quietMetrics struct {
	sdkmetric.Exporter
	e *Exporter
}

func (q quietMetrics) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if err := q.Exporter.Export(ctx, m); err != nil {
		q.e.warn(err)
	}
	return nil
}

type quietLogs struct {
	sdklog.Exporter
	e *Exporter
}

func (q quietLogs) Export(ctx context.Context, records []sdklog.Record) error {
	if err := q.Exporter.Export(ctx, records); err != nil {
		q.e.warn(err)
	}
	return nil
}
