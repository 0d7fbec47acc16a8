package collectortest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/core/telemetry/otlp"
)

// collector is a running OpenTelemetry Collector.
type collector struct {
	endpoint map[string]string // by protocol
	log      string            // a file with what it got
}

func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// factories are the components of the collector: it takes OTLP and prints it.
func factories() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](debugexporter.NewFactory())
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: otelconftelemetry.NewFactory()}, err
}

// collect runs a collector until the test ends.
func collect(t *testing.T) *collector {
	t.Helper()
	grpc, http := port(t), port(t)
	c := &collector{map[string]string{"grpc": "http://" + grpc, "http/protobuf": "http://" + http}, filepath.Join(t.TempDir(), "collector.log")}
	config := fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed, use_internal_logger: false, output_paths: [%q]}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
    logs: {receivers: [otlp], exporters: [debug]}
`, grpc, http, c.log)
	service, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(), Factories: factories, DisableGracefulShutdown: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{config}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- service.Run(context.Background()) }()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for service.GetState() != otelcol.StateRunning {
		select {
		case <-ticker.C:
		case err := <-ended:
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		service.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// got checks what the collector has of each signal, and of all of them.
func (c *collector) got(t *testing.T, signals map[string][]string, all ...string) {
	t.Helper()
	data, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for part := range strings.SplitSeq("\n"+string(data), "\nResource") {
		for signal := range signals {
			if strings.Contains(part, "\n"+signal+" #0") {
				texts[signal] += part
			}
		}
	}
	for signal, wants := range signals {
		for _, want := range append(wants, all...) {
			if !strings.Contains(texts[signal], want) {
				t.Errorf("the collector got no %s of %q:\n%s", signal, want, texts[signal])
			}
		}
	}
}

// TestCollector sends a session over gRPC and over HTTP.
func TestCollector(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			c := collect(t)
			e, err := otlp.Open(t.Context(), otlp.Options{
				Endpoint: c.endpoint[protocol], Protocol: protocol, Logs: true, Version: "1.2", Warn: func(m string) { t.Error(m) },
				Price: func(string, string, model.Usage) (float64, bool) { return 0.25, true },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, ev := range work() {
				e.Event(ev)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if s := e.Stats(); s.Sent != 3 || s.Failed+s.Dropped+s.Waiting != 0 {
				t.Errorf("stats %+v", s)
			}
			c.got(t, map[string][]string{
				"Span": {"invoke_agent agent", "chat gpt", "execute_tool shell", "gen_ai.request.model: Str(gpt)", "agent.output.bytes: Int(6)", "gen_ai.first_token"},
				"Metric": {
					"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk",
					"agent.tool.duration", "agent.permission.decisions", "agent.cost", "agent.sessions.active",
				},
				"LogRecord": {"agent.session_start", "agent.tool_use", "agent.session_end", "gen_ai.conversation.id: Str(s)"},
			}, "service.name: Str(agent)", "service.version: Str(1.2)", "https://opentelemetry.io/schemas/"+telemetry.Version)
		})
	}
}

// work is the events of a session with one tool call.
func work() (events []event.Event) {
	began := time.Now()
	for i, b := range []event.Body{
		event.SessionStart{Provider: "openai", Model: "gpt", Agent: "1.2"},
		event.User{Content: model.TextParts("the question")},
		event.LLMStart{Provider: "openai", Model: "gpt", Server: "https://api.example.com"},
		event.MessageStart{},
		event.Message{Content: model.Parts{model.ToolCall{ID: "c", Name: "shell", Args: `{"command":"ls"}`}}},
		event.LLMEnd{Provider: "openai", Model: "gpt", FirstMS: 5, Stop: model.StopToolCalls, Usage: model.Usage{Input: 100, Output: 20}},
		event.ToolUse{Name: "shell", Source: "builtin", Args: `{"command":"ls"}`},
		event.Permission{Tool: "shell", Decision: "allow", Decider: "policy"},
		event.ToolResult{Name: "shell", Content: model.TextParts("go.mod")},
		event.Idle{State: "idle", Stop: "done"},
		event.SessionEnd{},
	} {
		e := event.Event{V: 1, Seq: event.Seq(i + 1), Session: "s", Time: began.Add(time.Duration(i) * time.Millisecond), Body: b}
		switch b.(type) {
		case event.ToolUse, event.Permission, event.ToolResult:
			e.Call = "c"
		}
		events = append(events, e)
	}
	return events
}
