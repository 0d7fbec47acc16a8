package bundle

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the test binary as a process that changes a store and is killed
// in the middle, where a test starts it so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BUNDLE_TEST_VICTIM"); dir != "" {
		os.Exit(victim(dir))
	}
	goleak.VerifyTestMain(m)
}
