package host_test

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry/otlp"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/host/hosttest"
)

// values returns the sums of the metrics by name.
func values(t *testing.T, from sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := from.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			case metricdata.Sum[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				sums[m.Name] += p.Value
			}
		}
	}
	return sums
}

// TestMetrics is a service with two sessions, one of them with inputs that wait.
func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	exporter, err := otlp.Open(t.Context(), otlp.Options{Metrics: provider})
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	hold := core.NewTool(core.ToolDefinition{Name: "hold"}, func(context.Context, *core.Call, struct{}) ([]core.Access, error) {
		return nil, nil
	}, func(context.Context, *core.Call, struct{}) (core.Result, error) {
		close(entered)
		<-release
		return core.TextResult("held"), nil
	})
	a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Home: t.TempDir(), Tools: []core.Tool{hold}, NoBuiltins: true, Policy: hosttest.Policy{}, Telemetry: exporter})
	if err != nil {
		t.Fatal(err)
	}
	h := host.New("", func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
		p := coretest.Model(coretest.CallTools(model.ToolCall{ID: "c", Name: "hold", Args: "{}"}), coretest.Say("One."), coretest.Say("Two."), coretest.Say("Three."))
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: p, Asker: asker, Resume: o.ID})
		return host.Opened{Session: s}, err
	})
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, text := range []string{"one", "two", "three"} {
		if last, err = s.Do(t.Context(), host.Command{Type: "input", When: "next", Content: []host.Part{{Type: "text", Text: text}}}); err != nil {
			t.Fatal(err)
		}
	}
	<-entered
	if got := values(t, reader); got["agent.queue.inputs"] != 2 {
		t.Errorf("while the first input is processed: %v", got)
	}
	close(release)
	for e := range s.Events(t.Context(), s.Past()) {
		if b, ok := e.Body.(event.Result); ok && b.Run == last {
			break
		}
	}
	if got := values(t, reader); got["agent.queue.inputs"] != 0 {
		t.Errorf("after the last input: %v", got)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil { // all events are passed on
		t.Fatal(err)
	}
	got := values(t, reader)
	if _, known := got["agent.queue.inputs"]; known || got["agent.sessions.active"] != 0 {
		t.Errorf("after the end: %v", got)
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}
