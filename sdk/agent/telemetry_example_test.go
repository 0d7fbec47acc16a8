package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/telemetry/otlp"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// A program with its own OpenTelemetry passes its span processor, here a recorder;
// without one, otlp.Options names the endpoint of a collector.
func ExampleOptions_telemetry() {
	ctx := context.Background()
	recorder := tracetest.NewSpanRecorder()
	exporter, err := otlp.Open(ctx, otlp.Options{Spans: recorder})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := agent.Open(ctx, agent.Options{Dir: ".", Telemetry: exporter})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: scriptedModel("  - {text: Good day!}\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Submit(ctx, core.TextInput("Hello!"))
	_, _ = s.Close(), a.Close() // sends what is left
	for _, span := range recorder.Ended() {
		fmt.Println(span.Name(), span.SpanKind(), err)
	}
	// Output:
	// chat example client <nil>
	// invoke_agent agent internal <nil>
}

// A tool that logs with its context says in which trace it runs.
func ExampleLogHandler() {
	ctx := context.Background()
	plain := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch {
		case a.Key == slog.TimeKey:
			return slog.Attr{}
		case slices.Contains([]string{"trace_id", "span_id"}, a.Key):
			return slog.Int(a.Key+"_length", len(a.Value.String()))
		}
		return a
	}})
	logger := slog.New(agent.LogHandler(plain))
	look := core.NewTool(core.ToolDefinition{Name: "look"}, func(context.Context, *core.Call, struct{}) ([]core.Access, error) {
		return nil, nil
	}, func(ctx context.Context, _ *core.Call, _ struct{}) (core.Result, error) {
		logger.InfoContext(ctx, "looking")
		return core.TextResult("nothing"), nil
	})
	a, err := agent.Open(ctx, agent.Options{Dir: ".", Tools: []core.Tool{look}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: scriptedModel("  - {calls: [{name: look, args: {}}]}\n  - {text: Done.}\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	_, err = s.Submit(ctx, core.TextInput("Look around"))
	fmt.Println(err)
	// Output:
	// level=INFO msg=looking trace_id_length=32 span_id_length=16
	// <nil>
}
