package server_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the stdio server that tests start as a process.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SERVER_TEST_DIR"); dir != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		a, s, err := open(ctx, dir)
		if err == nil {
			err = s.ServeStdio(ctx, os.Stdin, os.Stdout)
			closed := s.Close()
			fmt.Fprintf(os.Stderr, "ended: %v, closed: %v, agent: %v\n", err, closed, a.Close())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mark3labs/mcp-go/client/transport.(*StreamableHTTP).Start.func1"))
}
