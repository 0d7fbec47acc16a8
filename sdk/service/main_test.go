package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/sdk/service/jetstream"
)

// What the test binary is, as JSON: a server, or a worker.
const (
	serverEnv = "AGENT_TEST_SERVER"
	workerEnv = "AGENT_TEST_WORKER"
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(serverEnv) != "":
		err = serveProcess(os.Getenv(serverEnv))
	case os.Getenv(workerEnv) != "":
		err = workProcess(os.Getenv(workerEnv))
	default:
		goleak.VerifyTestMain(m, natsLeak)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// untilParentEnds returns a context that ends with standard input.
func untilParentEnds() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

func serveProcess(text string) error {
	var o jetstream.ServeOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	s, err := jetstream.Serve(o)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("ready")
	<-untilParentEnds().Done()
	return nil
}

// natsLeak is a goroutine that nats.go leaves behind if an object is stored before the
// goroutine has begun.
var natsLeak = goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
