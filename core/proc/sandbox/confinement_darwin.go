package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// levelsHere are the levels of this system.
var levelsHere = []Level{Seatbelt}

const noLevels = "this level exists only on Linux; macOS supports auto and require"

const sandboxExec = "/usr/bin/sandbox-exec"

// build wraps the command into sandbox-exec.
func (c *Confinement) build(p *Profile, cmd *exec.Cmd) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	tmp := p.Tmp
	if tmp == "" {
		var err error
		if c.tmp, err = NewTempDir(); err != nil {
			return fmt.Errorf("sandbox: create a directory for temporary files: %w", err)
		}
		tmp = c.tmp.Path
	}
	tmp, err := filepath.EvalSymlinks(tmp)
	if err != nil {
		return fmt.Errorf("sandbox: resolve the directory for temporary files: %w", err)
	}
	l, err := newLayout(p)
	if err != nil {
		return err
	}
	args := []string{sandboxExec, "-p", seatbeltProfile(p, l, tmp), cmd.Path}
	if len(cmd.Args) > 0 {
		args = append(args, cmd.Args[1:]...)
	}
	cmd.Path, cmd.Args = sandboxExec, args
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "TMPDIR="+tmp)
	cmd.Env = append(cmd.Env, cacheEnv(p, tmp, true, nil)...)
	return nil
}

// probe tests the level with a program that does nothing.
func (m *Manager) probe(level Level) (works bool, reason string) {
	cmd := exec.Command("/usr/bin/true")
	cmd.Env = []string{}
	c, err := m.confine(level, &Profile{}, cmd)
	if err != nil {
		return false, err.Error()
	}
	defer c.Remove()
	if err := m.runner.Start(cmd, c.Start); err != nil {
		return false, err.Error()
	}
	m.runner.Wait(cmd)
	if state := cmd.ProcessState; state == nil || !state.Success() {
		return false, fmt.Sprintf("%s fails: %v", sandboxExec, state)
	}
	return true, ""
}
