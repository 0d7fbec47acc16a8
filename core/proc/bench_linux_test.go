package proc_test

import (
	"context"
	"io"
	"testing"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// BenchmarkSandbox compares the start of a program with and without a sandbox.
func BenchmarkSandbox(b *testing.B) {
	for _, mode := range []sandbox.Mode{sandbox.ModeOff, sandbox.ModeNamespace, sandbox.ModeLandlock} {
		b.Run(string(mode), func(b *testing.B) {
			s := newSupervisor(b)
			if _, err := s.Sandbox().Choose(context.Background(), mode); err != nil {
				b.Skip(err)
			}
			dir := b.TempDir()
			spec := proc.Spec{Path: "/bin/true", Dir: dir, Stdout: io.Discard, Stderr: io.Discard}
			spec.Sandbox = &sandbox.Profile{Mode: mode, Writable: []string{dir}, ReadOnly: []string{dir + "/.git/"}, Masked: []string{"/root/.ssh"}}
			b.ReportAllocs()
			for b.Loop() {
				run(b, s, spec)
			}
		})
	}
}
