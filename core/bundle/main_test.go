package bundle

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets a test run the test binary as a process that changes a store and
// is killed during the change.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BUNDLE_TEST_VICTIM"); dir != "" {
		os.Exit(victim(dir))
	}
	goleak.VerifyTestMain(m)
}
