package otlp

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry"
)

// The buckets that the conventions give.
var (
	durationBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBuckets    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	firstBuckets    = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0}
)

// instruments are the metrics. A nil pointer measures nothing.
type instruments struct {
	operation, first, tokens, tool, wait metric.Float64Histogram
	cost                                 metric.Float64Counter
	decisions                            metric.Int64Counter
	active                               metric.Int64UpDownCounter
}

func newInstruments(m metric.Meter, numbers func() []telemetry.Number) (*instruments, error) {
	var errs []error
	histogram := func(name, unit, text string, buckets []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	i := &instruments{
		operation: histogram("gen_ai.client.operation.duration", "s", "GenAI operation duration.", durationBuckets),
		first:     histogram("gen_ai.client.operation.time_to_first_chunk", "s", "Time to receive the first chunk of a response.", firstBuckets),
		tokens:    histogram("gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", tokenBuckets),
		tool:      histogram("agent.tool.duration", "s", "Duration of tool calls, without waiting for the user.", durationBuckets),
		wait:      histogram("agent.question.duration", "s", "Time until the user answered a question.", durationBuckets),
	}
	var err error
	i.cost, err = m.Float64Counter("agent.cost", metric.WithUnit("{USD}"), metric.WithDescription("Cost of model calls, where the price is known."))
	errs = append(errs, err)
	i.decisions, err = m.Int64Counter("agent.permission.decisions", metric.WithUnit("{decision}"), metric.WithDescription("Decisions on tool calls."))
	errs = append(errs, err)
	i.active, err = m.Int64UpDownCounter("agent.sessions.active", metric.WithUnit("{session}"), metric.WithDescription("Open sessions, with those of subagents."))
	return i, errors.Join(append(errs, err, observe(m, numbers))...)
}

// observe measures numbers whenever metrics are sent.
func observe(m metric.Meter, numbers func() []telemetry.Number) error {
	queue, err := m.Int64ObservableGauge("agent.queue.inputs", metric.WithUnit("{input}"), metric.WithDescription("Inputs that wait until the one before is processed."))
	running, err2 := m.Int64ObservableGauge("agent.source.running", metric.WithUnit("{process}"), metric.WithDescription("Plugins and MCP servers that run."))
	starts, err3 := m.Int64ObservableCounter("agent.source.starts", metric.WithUnit("{start}"), metric.WithDescription("Starts of plugins and MCP servers."))
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	known := map[string]metric.Int64Observable{"agent.queue.inputs": queue, "agent.source.running": running, "agent.source.starts": starts}
	type key struct {
		name string
		set  attribute.Distinct
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		sums, sets := map[key]int64{}, map[key]attribute.Set{}
		for _, n := range numbers() {
			set := attribute.NewSet(attributes(n.Attributes)...)
			k := key{n.Name, set.Equivalent()}
			sums[k] += n.Value
			sets[k] = set
		}
		for k, sum := range sums {
			i := known[k.name]
			if i == nil {
				return fmt.Errorf("telemetry: the metric %s is not known", k.name)
			}
			o.ObserveInt64(i, sum, metric.WithAttributeSet(sets[k]))
		}
		return nil
	}, queue, running, starts)
	return err
}

func (i *instruments) event(e event.Event) {
	if i == nil {
		return
	}
	switch b := e.Body.(type) {
	case event.SessionStart:
		i.active.Add(context.Background(), 1)
	case event.SessionEnd:
		i.active.Add(context.Background(), -1)
	case event.Permission:
		i.decisions.Add(context.Background(), 1, metric.WithAttributes(attribute.String("agent.permission.decision", b.Decision),
			attribute.String("agent.permission.decider", b.Decider), attribute.String("gen_ai.tool.name", b.Tool)))
	}
}

// dimensions are the attributes of spans that metrics have, too.
var dimensions = map[string]bool{
	"gen_ai.operation.name": true, "gen_ai.provider.name": true, "gen_ai.request.model": true, "gen_ai.response.model": true,
	"server.address": true, "server.port": true, "error.type": true, "gen_ai.tool.name": true, "agent.tool.source": true,
}

func (i *instruments) span(s *telemetry.Span, price func(provider, model string, u model.Usage) (float64, bool)) {
	if i == nil {
		return
	}
	ctx, list := context.Background(), make([]telemetry.Attr, 0, 8)
	for _, a := range s.Attributes {
		if dimensions[a.Key] {
			list = append(list, a)
		}
	}
	with := metric.WithAttributeSet(attribute.NewSet(attributes(list)...))
	switch s.Kind {
	case telemetry.KindChat:
		i.operation.Record(ctx, s.Took().Seconds(), with)
		if s.First > 0 {
			i.first.Record(ctx, s.First.Seconds(), with)
		}
		if s.Usage != (model.Usage{}) {
			i.tokens.Record(ctx, float64(s.Usage.Input), with, metric.WithAttributes(attribute.String("gen_ai.token.type", "input")))
			i.tokens.Record(ctx, float64(s.Usage.Output), with, metric.WithAttributes(attribute.String("gen_ai.token.type", "output")))
		}
		if price == nil {
			return
		}
		if usd, known := price(s.Provider, s.Model, s.Usage); known && usd > 0 {
			i.cost.Add(ctx, usd, with)
		}
	case telemetry.KindRun:
		i.operation.Record(ctx, s.Took().Seconds(), with)
	case telemetry.KindTool:
		i.tool.Record(ctx, (s.Took() - s.Waited).Seconds(), with)
	case telemetry.KindQuestion:
		if s.Waited > 0 {
			i.wait.Record(ctx, s.Waited.Seconds(), with)
		}
	}
}
