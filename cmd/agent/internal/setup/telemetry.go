package setup

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/core/telemetry/otlp"
	"github.com/seed-009c0928/agent/core/tracecontext"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Telemetry sends what sessions do to the collector of the settings. Nothing of
// OpenTelemetry is initialised before the first event.
type Telemetry struct {
	open      func() (*otlp.Exporter, error)
	warn      func(message string)
	onWarning func(message string) bool
	numbers   telemetry.Numbers
	once      sync.Once
	exporter  *otlp.Exporter // nil before, and if it cannot be opened
}

// TelemetryOn reports whether telemetry is to be sent.
func (s *Setup) TelemetryOn() bool {
	return s.Settings.Telemetry.Enabled && !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true")
}

// Telemetry returns what sends telemetry; nil if it is off. Price returns the price of a
// model call.
func (s *Setup) Telemetry(io *cmdutil.IO, price func(provider, model string, u model.Usage) (float64, bool)) agent.Telemetry {
	if !s.TelemetryOn() {
		return nil
	}
	return &Telemetry{
		warn: func(message string) { fmt.Fprintf(io.Err, "agent: %s\n", message) },
		open: func() (*otlp.Exporter, error) {
			opts, err := s.TelemetryOptions(context.Background())
			if err != nil {
				return nil, err
			}
			opts.Price = price
			return otlp.Open(context.Background(), opts)
		},
	}
}

// TelemetryOptions returns the exporter's options of the settings. It reveals the
// headers.
func (s *Setup) TelemetryOptions(ctx context.Context) (otlp.Options, error) {
	t := s.Settings.Telemetry
	o := otlp.Options{
		Endpoint: t.Endpoint, Protocol: t.Protocol, Headers: map[string]string{}, SampleRatio: &t.SampleRatio, Logs: t.Logs,
		Content: t.EnableSensitiveData, Secrets: s.KnownSecrets(), Version: cmdutil.Version(),
	}
	for name, value := range t.Headers {
		text, err := value.Reveal(ctx)
		if err != nil {
			return o, err
		}
		o.Headers[name] = text
	}
	return o, nil
}

// TelemetryTarget returns where telemetry would be sent. It sends nothing.
func (s *Setup) TelemetryTarget(ctx context.Context) (otlp.Stats, error) {
	opts, err := s.TelemetryOptions(ctx)
	if err != nil {
		return otlp.Stats{}, err
	}
	return otlp.Target(opts)
}

// TelemetryReachable reports whether something accepts connections at an endpoint.
func TelemetryReachable(ctx context.Context, endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	return err == nil && conn.Close() == nil
}

// get returns the exporter; nil if it cannot be opened, which is one warning.
func (t *Telemetry) get() *otlp.Exporter {
	t.once.Do(func() {
		e, err := t.open()
		if err != nil {
			if text := err.Error(); t.onWarning == nil || !t.onWarning(text) {
				t.warn(text)
			}
			return
		}
		e.OnWarning(func(message string) bool {
			if t.onWarning == nil || !t.onWarning(message) {
				t.warn(message)
			}
			return true
		})
		e.Observe(t.numbers.Read)
		t.exporter = e
	})
	return t.exporter
}

// OnWarning sets what shows a warning while a session is open.
func (t *Telemetry) OnWarning(show func(message string) bool) { t.onWarning = show }

// Observe implements [agent.Observer].
func (t *Telemetry) Observe(read func() []telemetry.Number) (stop func()) {
	return t.numbers.Observe(read)
}

// Event implements [agent.Telemetry].
func (t *Telemetry) Event(e event.Event) {
	if x := t.get(); x != nil {
		x.Event(e)
	}
}

// Context implements [agent.Telemetry]. If the program was started as part of a trace,
// the work belongs to that.
func (t *Telemetry) Context(ctx context.Context) context.Context {
	x := t.get()
	if x == nil {
		return ctx
	}
	if span, sampled, ok := tracecontext.Parse(os.Getenv(tracecontext.Variable)); ok {
		ctx = x.Below(ctx, span, sampled)
	}
	return x.Context(ctx)
}

// Close implements [agent.Telemetry].
func (t *Telemetry) Close() error {
	t.once.Do(func() {}) // never opened
	if t.exporter == nil {
		return nil
	}
	return t.exporter.Close()
}

// Stats returns how the sending goes.
func (t *Telemetry) Stats() otlp.Stats {
	if x := t.get(); x != nil {
		return x.Stats()
	}
	return otlp.Stats{}
}
