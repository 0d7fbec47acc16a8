package chat

import (
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

func (c *chat) cmdTelemetry(context.Context, string) (string, error) {
	t, ok := c.agent.Telemetry().(*setup.Telemetry)
	if !ok {
		return "Telemetry is off. To switch it on: agent config set telemetry.enabled true", nil
	}
	s := t.Stats()
	if s.Endpoint == "" {
		return "Telemetry is on, but cannot be sent: the settings telemetry.* or an OTEL_ variable is invalid.", nil
	}
	return fmt.Sprintf("Telemetry is sent to %s (%s).\nSpans: %d sent, %d waiting, %d dropped, %d refused", s.Endpoint, s.Protocol, s.Sent, s.Waiting, s.Dropped, s.Failed), nil
}
