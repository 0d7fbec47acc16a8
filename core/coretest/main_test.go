package coretest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/coretest"
)

func TestMain(m *testing.M) {
	coretest.RunForeignIfAsked()
	goleak.VerifyTestMain(m)
}
