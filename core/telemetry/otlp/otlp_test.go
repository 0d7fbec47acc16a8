package otlp_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/core/telemetry/otlp"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hunter2-hunter2"

// work is the events of a session with one tool call.
func work() (events []event.Event) {
	result := event.ToolResult{Name: "shell", Content: model.TextParts("the result with " + secret), Bytes: 23}
	for i, b := range []event.Body{
		event.SessionStart{Provider: "openai", Model: "gpt", Agent: "1.2"},
		event.User{Content: model.TextParts("the question")},
		event.LLMStart{Provider: "openai", Model: "gpt", Server: "https://api.example.com"},
		event.MessageStart{},
		event.Message{Content: model.Parts{model.ToolCall{ID: "c", Name: "shell", Args: `{"command":"ls"}`}}},
		event.LLMEnd{Provider: "openai", Model: "gpt", FirstMS: 5, Stop: model.StopToolCalls, Usage: model.Usage{Input: 100, Output: 20}},
		event.ToolUse{Name: "shell", Source: "builtin", Args: `{"command":"ls"}`},
		event.Permission{Tool: "shell", Decision: "allow", Decider: "policy"},
		result,
		event.Idle{State: "idle", Stop: "done"},
		event.SessionEnd{},
	} {
		e := event.Event{V: 1, Seq: event.Seq(i + 1), Session: "s", Time: time.Date(2026, 1, 2, 3, 4, 5, i*1e7, time.UTC), Body: b}
		switch b.(type) {
		case event.ToolUse, event.Permission, event.ToolResult:
			e.Call = "c"
		}
		events = append(events, e)
	}
	return events
}

func send(t *testing.T, opts otlp.Options) *otlp.Exporter {
	t.Helper()
	e, err := otlp.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range work() {
		e.Event(ev)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSends(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			c := map[string]func(*testing.T) *collector{"grpc": grpcCollector, "http/protobuf": httpCollector}[protocol](t)
			price := func(string, string, model.Usage) (float64, bool) { return 0.25, true }
			e := send(t, otlp.Options{Endpoint: c.url, Protocol: protocol, Headers: map[string]string{"x-key": "k1"}, Logs: true, Price: price, Version: "1.2"})
			for signal, wants := range map[string][]string{
				"traces":  {"invoke_agent agent", "chat gpt", "execute_tool shell", "gen_ai.first_token", `"agent.output.bytes"`, "schemas/" + telemetry.Version},
				"metrics": {"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk", "agent.tool.duration", "agent.permission.decisions", "agent.sessions.active", "agent.cost", "67108864", "81.92", "7.5"},
				"logs":    {"agent.tool_use", "agent.session_end", "gen_ai.conversation.id"},
			} {
				for _, want := range wants {
					if !strings.Contains(c.of(signal), want) {
						t.Errorf("%s lack %s:\n%s", signal, want, c.of(signal))
					}
				}
				for _, private := range []string{"the question", "the result", "command", secret} {
					if strings.Contains(c.of(signal), private) {
						t.Errorf("%s have %q", signal, private)
					}
				}
			}
			if !strings.Contains(c.headers, "k1k1k1") {
				t.Errorf("headers %q", c.headers)
			}
			if s := e.Stats(); s.Sent != 3 || s.Failed+s.Dropped+s.Waiting != 0 || s.Endpoint != c.url {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestContentIsRedactedAndCut(t *testing.T) {
	c := httpCollector(t)
	e, err := otlp.Open(t.Context(), otlp.Options{Endpoint: c.url, Protocol: "http/protobuf", Content: true, Logs: true, Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range work() {
		if b, ok := ev.Body.(event.ToolResult); ok {
			b.Content = model.TextParts("the result with " + secret + strings.Repeat("é", 20_000))
			ev.Body = b
		}
		e.Event(ev)
	}
	_ = e.Close()
	for _, signal := range []string{"traces", "logs"} {
		got := c.of(signal)
		if strings.Contains(got, secret) || !strings.Contains(got, "the result with [redacted]") || !strings.Contains(got, "the question") {
			t.Errorf("%s: %.3000s", signal, got)
		}
		for _, m := range regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).FindAllString(got, -1) {
			if len(m) > 10<<10 {
				t.Errorf("%s: a text of %d bytes: %.60s", signal, len(m), m)
			}
		}
	}
}

func TestVariablesWin(t *testing.T) {
	named, other := httpCollector(t), httpCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", named.url)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=theirs")
	t.Setenv("OTEL_SERVICE_NAME", "my-agent")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	e := send(t, otlp.Options{Endpoint: other.url, Protocol: "grpc", Headers: map[string]string{"x-key": "mine"}})
	if !strings.Contains(named.of("traces"), "my-agent") || named.of("metrics") != "" || other.of("traces") != "" || named.headers != "theirs" {
		t.Errorf("traces %s, metrics %s, headers %q", named.of("traces"), named.of("metrics"), named.headers)
	}
	if s := e.Stats(); s.Endpoint != named.url || s.Protocol != "http/protobuf" {
		t.Errorf("stats %+v", s)
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	if s := send(t, otlp.Options{}).Stats(); s.Sent != 0 {
		t.Errorf("always_off sent %d spans", s.Sent)
	}
}

func TestOpenRefuses(t *testing.T) {
	half := 1.5
	for want, opts := range map[string]otlp.Options{
		`protocol "http/json" is not supported`:  {Protocol: "http/json"},
		`endpoint "localhost:4317" is not a URL`: {Endpoint: "localhost:4317"},
		`sample ratio 1.5`:                       {SampleRatio: &half},
	} {
		if _, err := otlp.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestDeadEndpoint sends to a port at which nobody answers, and to one that accepts
// connections and is silent.
func TestDeadEndpoint(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "http://" + l.Addr().String()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + closed.Addr().String()
	_ = closed.Close()
	defer l.Close()
	for _, endpoint := range []string{silent, dead} {
		var warnings []string
		e, err := otlp.Open(t.Context(), otlp.Options{Endpoint: endpoint, Protocol: "http/protobuf", Logs: true, Warn: func(m string) { warnings = append(warnings, m) }})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 3 {
			for _, ev := range work() {
				e.Event(ev)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: it took %s", endpoint, took)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "telemetry cannot be sent to "+endpoint) {
			t.Errorf("%s: warnings %q", endpoint, warnings)
		}
	}
	_ = l.Close() // ends what the silent one keeps
	goleak.VerifyNone(t, goleak.IgnoreCurrent())
}

func TestQueueIsBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e, err := otlp.Open(t.Context(), otlp.Options{Endpoint: "http://" + l.Addr().String(), Protocol: "http/protobuf"})
	if err != nil {
		t.Fatal(err)
	}
	const all = 5000
	for i := range all {
		e.Event(event.Event{V: 1, Seq: event.Seq(i + 1), Session: "s", Time: time.Unix(int64(i), 0), Body: event.User{}}) // ends the input before
	}
	s := e.Stats()
	if s.Dropped != all-1-2048 || s.Waiting != 2048 {
		t.Errorf("stats %+v", s)
	}
	_ = e.Close()
}

func TestSampling(t *testing.T) {
	half := 0.5
	e, err := otlp.Open(t.Context(), otlp.Options{SampleRatio: &half})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	n := 0
	for i := range 1000 {
		if e.Sampled(tracecontext.Span{}.Child("s", uint64(i)).Trace) {
			n++
		}
	}
	if n < 400 || n > 600 {
		t.Errorf("%d of 1000 traces are sampled at 0.5", n)
	}
	for _, sampled := range []bool{true, false} {
		for i := range 20 {
			above := tracecontext.Span{}.Child(fmt.Sprint(sampled), uint64(i))
			ctx := e.Context(e.Below(context.Background(), above, sampled))
			if _, flag, ok := tracecontext.Parse(tracecontext.Header(ctx)); !ok || flag != sampled {
				t.Errorf("below a span that is sampled %t: %s", sampled, tracecontext.Header(ctx))
			}
		}
	}
}

// TestOwnProvider is a program with its own OpenTelemetry.
func TestOwnProvider(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	e, err := otlp.Open(t.Context(), otlp.Options{Spans: spans})
	if err != nil {
		t.Fatal(err)
	}
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	ctx := e.Context(trace.ContextWithSpanContext(context.Background(), caller))
	if at := tracecontext.From(ctx); at.Trace != caller.TraceID().String() || at.ID != caller.SpanID().String() {
		t.Errorf("the input is in %v", at)
	}
	if back := trace.SpanContextFromContext(e.ToolContext(ctx)); back.SpanID() != caller.SpanID() || !back.IsSampled() {
		t.Errorf("a tool is in %v", back)
	}
	for _, ev := range work() {
		e.Event(ev)
	}
	if n := len(spans.Ended()); n != 3 {
		t.Errorf("%d spans", n)
	}
	_ = e.Close()
}

// TestConvention compares names with those of the pinned conventions.
func TestConvention(t *testing.T) {
	if want := "https://opentelemetry.io/schemas/" + telemetry.Version; semconv.SchemaURL != want {
		t.Errorf("the conventions have the schema %s, we %s", semconv.SchemaURL, want)
	}
	known := map[string]bool{}
	for _, k := range []string{
		string(semconv.GenAIConversationIDKey), string(semconv.GenAIOperationNameKey), string(semconv.GenAIAgentNameKey), string(semconv.GenAIAgentVersionKey),
		string(semconv.GenAIProviderNameKey), string(semconv.GenAIRequestModelKey), string(semconv.GenAIRequestStreamKey), string(semconv.GenAIResponseModelKey),
		string(semconv.GenAIResponseIDKey), string(semconv.GenAIResponseFinishReasonsKey), string(semconv.GenAIResponseTimeToFirstChunkKey),
		string(semconv.GenAIUsageInputTokensKey), string(semconv.GenAIUsageOutputTokensKey), string(semconv.GenAIUsageCacheReadInputTokensKey),
		string(semconv.GenAIUsageCacheCreationInputTokensKey), string(semconv.GenAIUsageReasoningOutputTokensKey), string(semconv.GenAIToolNameKey),
		string(semconv.GenAIToolCallIDKey), string(semconv.GenAIToolTypeKey), string(semconv.ServerAddressKey), string(semconv.ServerPortKey), string(semconv.ErrorTypeKey),
		string(semconv.GenAIInputMessagesKey), string(semconv.GenAIOutputMessagesKey), string(semconv.GenAISystemInstructionsKey),
		string(semconv.GenAIToolCallArgumentsKey), string(semconv.GenAIToolCallResultKey),
	} {
		known[k] = true
	}
	for _, s := range telemetry.Spans(work()) {
		for _, a := range append(s.Attributes, s.Content...) {
			if !strings.HasPrefix(a.Key, "agent.") && !known[a.Key] {
				t.Errorf("%s: attribute %s is not one of the conventions", s.Name, a.Key)
			}
		}
	}
	for name, want := range map[string]string{
		"gen_ai.client.token.usage":                   genaiconv.ClientTokenUsage{}.Name(),
		"gen_ai.client.operation.duration":            genaiconv.ClientOperationDuration{}.Name(),
		"gen_ai.client.operation.time_to_first_chunk": genaiconv.ClientOperationTimeToFirstChunk{}.Name(),
	} {
		if name != want {
			t.Errorf("metric %s, the conventions have %s", name, want)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	e, err := otlp.Open(b.Context(), otlp.Options{Endpoint: "http://127.0.0.1:1", Protocol: "http/protobuf"})
	if err != nil {
		b.Fatal(err)
	}
	events := work()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e.Event(events[i%len(events)])
	}
	b.StopTimer()
	_ = e.Close()
}
