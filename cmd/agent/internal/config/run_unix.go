//go:build unix

package config

import (
	"context"
	"os/exec"
	"syscall"
)

// shellCommand prepares a line for sh, in its own process group, which is
// killed with ctx.
func shellCommand(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
