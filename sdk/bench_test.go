package sdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed-009c0928/agent/sdk/sdktest"
)

// BenchmarkMinimalPlugin measures the start of the smallest plugin up to its first
// answer; it reports the size of the program, built as agent builds plugins.
func BenchmarkMinimalPlugin(b *testing.B) {
	program := filepath.Join(b.TempDir(), "minimal.exe")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", program, "./testdata/minimal")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		sdktest.StartBinary(b, program).Describe(b)
	}
	b.ReportMetric(float64(info.Size()), "B/program")
}
