package client

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, natsLeak) }

// natsLeak is a goroutine that nats.go leaves behind if an object is stored before the
// goroutine has begun.
var natsLeak = goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
