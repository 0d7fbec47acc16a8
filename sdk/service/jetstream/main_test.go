package jetstream

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// nodeEnv makes the test binary a server: its options as JSON.
const nodeEnv = "AGENT_TEST_NODE"

func TestMain(m *testing.M) {
	if text := os.Getenv(nodeEnv); text != "" {
		if err := serveNode(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, natsLeak)
}

// serveNode runs a server until standard input ends, with its parent.
func serveNode(text string) error {
	var o ServeOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	s, err := Serve(o)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Close()
	return err
}

// natsLeak is a goroutine that nats.go leaves behind if an object is stored before the
// goroutine has begun.
var natsLeak = goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
