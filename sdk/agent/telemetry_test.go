package agent_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry/otlp"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Arguments that make the test binary a plugin or an MCP server, whose tool returns
// the trace that a call belongs to.
const (
	tracePlugin = "-serve-trace-plugin"
	traceServer = "-serve-trace-mcp"
)

func plugin() sdk.Plugin {
	return sdk.Plugin{Name: "tracer", Version: "1", Extensions: []sdk.Extension{sdk.Tool("from_plugin", "Say it.", func(c *sdk.Context, _ struct{}) (string, error) {
		md, _ := metadata.FromIncomingContext(c)
		return "trace:" + strings.Join(md.Get("traceparent"), ","), nil
	})}}
}

func serveTraces() {
	for _, arg := range os.Args[1:] {
		switch arg {
		case tracePlugin:
			sdk.Serve(plugin())
			os.Exit(0)
		case traceServer:
			s := mcpserver.NewMCPServer("tracer", "1", mcpserver.WithToolCapabilities(true))
			s.AddTool(mcpgo.NewTool("from_mcp"), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
				text := "trace:"
				if r.Params.Meta != nil && r.Params.Meta.AdditionalFields["traceparent"] != nil {
					text += fmt.Sprint(r.Params.Meta.AdditionalFields["traceparent"])
				}
				return mcpgo.NewToolResultText(text), nil
			})
			if mcpserver.ServeStdio(s) != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
}

// TestOneTraceOverAllProcesses calls a plugin, an MCP server and a command, which say
// what trace they are part of.
func TestOneTraceOverAllProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") // of this process, not of its children
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			recorder := tracetest.NewSpanRecorder()
			a, _ := open(t, func(o *agent.Options) {
				o.Plugins = &plugins.Options{Home: o.Home, Bundled: []sdk.Plugin{plugin()}, BundledCommand: []string{self, tracePlugin}}
				o.MCP.Servers = []mcp.Configured{{Name: "tracer-mcp", Server: mcp.Server{Command: self, Args: []string{traceServer}, Required: true}}}
				if !on {
					return
				}
				if o.Telemetry, err = otlp.Open(t.Context(), otlp.Options{Spans: recorder}); err != nil {
					t.Fatal(err)
				}
			}, nil)
			if _, err := a.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			names := map[string]string{"from_plugin": "{}", "tracer-mcp__from_mcp": "{}", "shell": `{"command":"echo \"trace:$TRACEPARENT\""}`}
			var calls []model.ToolCall
			for name, args := range names {
				calls = append(calls, model.ToolCall{ID: "c-" + name, Name: name, Args: args})
			}
			s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model(coretest.CallTools(calls...), coretest.Say("Done."))})
			if err != nil {
				t.Fatal(err)
			}
			submitInput(t, s, "go")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for e := range s.Events(t.Context(), 0) {
				if b, ok := e.Body.(event.ToolResult); ok {
					_, trace, _ := strings.Cut(b.Content.Text(), "trace:")
					got[b.Name], _, _ = strings.Cut(trace+"\n", "\n")
				}
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, span := range recorder.Ended() {
				if name, ok := strings.CutPrefix(span.Name(), "execute_tool "); ok {
					want[name] = fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID())
				}
			}
			if on && (len(want) != 3 || len(traces(recorder.Ended())) != 1) {
				t.Errorf("spans %v in %v", want, traces(recorder.Ended()))
			}
			for name := range names {
				if got[name] != want[name] {
					t.Errorf("%s is in %q, want %q", name, got[name], want[name])
				}
			}
		})
	}
}

func traces(spans []sdktrace.ReadOnlySpan) map[string]bool {
	ids := map[string]bool{}
	for _, s := range spans {
		ids[s.SpanContext().TraceID().String()] = true
	}
	return ids
}

func submitInput(t *testing.T, s *agent.Session, text string) {
	t.Helper()
	if _, err := s.Submit(t.Context(), core.TextInput(text)); err != nil {
		t.Fatal(err)
	}
}

// TestMetricsOfSources starts a plugin and an MCP server, and one that cannot be started.
func TestMetricsOfSources(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reader := sdkmetric.NewManualReader()
	a, _ := open(t, func(o *agent.Options) {
		o.Plugins = &plugins.Options{Home: o.Home, Bundled: []sdk.Plugin{plugin()}, BundledCommand: []string{self, tracePlugin}}
		o.MCP.Servers = []mcp.Configured{
			{Name: "tracer-mcp", Server: mcp.Server{Command: self, Args: []string{traceServer}, Required: true}},
			{Name: "missing", Server: mcp.Server{Command: filepath.Join(t.TempDir(), "missing"), Required: true}},
		}
		if o.Telemetry, err = otlp.Open(t.Context(), otlp.Options{Metrics: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}); err != nil {
			t.Fatal(err)
		}
	}, nil)
	measured := func() map[string]int64 {
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		add := func(name string, points []metricdata.DataPoint[int64]) {
			if !strings.HasPrefix(name, "agent.source.") {
				return
			}
			for _, p := range points {
				got[name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] = min(p.Value, 1) // a failure is repeated
			}
		}
		for _, m := range all.ScopeMetrics[0].Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				add(m.Name, data.DataPoints)
			case metricdata.Sum[int64]:
				add(m.Name, data.DataPoints)
			}
		}
		return got
	}
	check := func(when string, want map[string]int64) {
		t.Helper()
		if got := measured(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	const running, starts = "agent.source.running ", "agent.source.starts "
	const plugin, server, missing = "agent.source.kind=plugin,agent.source.name=tracer", "agent.source.kind=mcp,agent.source.name=tracer-mcp", "agent.source.kind=mcp,agent.source.name=missing"
	check("at first", map[string]int64{running + plugin: 0, running + server: 0, running + missing: 0})
	if _, err := a.Ready(t.Context()); err == nil {
		t.Error("a required server that is missing is ready")
	}
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model(coretest.CallTools(model.ToolCall{ID: "c", Name: "from_plugin", Args: "{}"}), coretest.Say("Done."))})
	if err != nil {
		t.Fatal(err)
	}
	submitInput(t, s, "go")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check("at work", map[string]int64{
		running + plugin: 1, running + server: 1, running + missing: 0,
		starts + plugin: 1, starts + server: 1, starts + missing + ",error.type=START_FAILED": 1,
	})
}
