package proc_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv makes the test binary play a role instead of running tests.
const roleEnv = "PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}
