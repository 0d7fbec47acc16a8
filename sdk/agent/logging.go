package agent

import (
	"context"
	"log/slog"

	"github.com/seed-009c0928/agent/core/tracecontext"
)

// LogHandler returns a handler that adds the attributes trace_id and span_id to records
// that are logged with the context of a tool call or an input, as [Options.Logger] and
// tools in Go do, and passes them on. So logs and traces of [Options.Telemetry] belong
// together.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if at := tracecontext.From(ctx); at.ID != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", at.Trace), slog.String("span_id", at.ID))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
