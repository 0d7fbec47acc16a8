package oauth_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the other process of TestTwoProcesses.
func TestMain(m *testing.M) {
	if server := os.Getenv("OAUTH_TEST_SERVER"); server != "" {
		os.Exit(otherProcess(server, os.Getenv("OAUTH_TEST_STORE")))
	}
	goleak.VerifyTestMain(m)
}
