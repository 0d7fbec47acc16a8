package config

import (
	"context"
	"os/exec"
	"syscall"
)

// shellCommand prepares a line for cmd.exe. Only that process is killed with
// ctx, not its children.
func shellCommand(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /d /s /c "` + line + `"`}
	return cmd
}
