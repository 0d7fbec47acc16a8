//go:build unix

package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/env"
)

// TestDoctorHangingProgram checks that a program which hangs is killed.
func TestDoctorHangingProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\nexec /bin/sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	local, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	d := &doctor{local: local}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	got := d.checkProgram(ctx, programs[0])
	if got.Status != healthWarn || !strings.Contains(got.Detail, "timed out") {
		t.Errorf("finding %+v", got)
	}
	if err := local.Close(); err != nil {
		t.Error(err)
	}
}
