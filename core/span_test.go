package core_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
)

// spanNames is a tracer that records spans with their parents.
type spanNames struct {
	noop.Tracer
	mu    sync.Mutex
	names []string
}

type namedSpan struct {
	noop.Span
	name string
}

func (n *spanNames) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent, ok := trace.SpanFromContext(ctx).(namedSpan)
	path := name
	if ok {
		path = parent.name + ">" + name
	}
	n.mu.Lock()
	n.names = append(n.names, path)
	n.mu.Unlock()
	span := namedSpan{name: path}
	return trace.ContextWithSpan(ctx, span), span
}

func TestSpans(t *testing.T) {
	spans := &spanNames{}
	r := newRig(t, func(c *core.Config) { c.Tools, c.Tracer = core.StaticTools(echo), spans },
		coretest.CallTools(call("echo", `{"text":"x"}`)), coretest.Say("Done."))
	r.submit(t, "go")
	want := []string{"agent.run", "agent.run>gen_ai.chat", "agent.run>tool.execute", "agent.run>gen_ai.chat"}
	if !slices.Equal(spans.names, want) {
		t.Errorf("spans %v, want %v", spans.names, want)
	}
}
