package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// checkSandbox says how child processes are confined with these settings.
func (d *doctor) checkSandbox(ctx context.Context) finding {
	set := config.Sandbox{Shell: string(sandbox.ModeAuto), Skills: string(sandbox.ModeAuto), Plugins: string(sandbox.ModeAuto), MCP: string(sandbox.ModeAuto)}
	if d.set != nil {
		set = d.set.Settings.Sandbox
	}
	var parts, bare []string
	for _, scope := range []struct{ name, mode string }{
		{"shell", set.Shell}, {"skills", set.Skills}, {"plugins", set.Plugins}, {"mcp", set.MCP},
	} {
		level, err := d.commands.Sandbox().Choose(ctx, sandbox.Mode(scope.mode))
		if err != nil {
			return found(healthFail, "sandbox.%s is %s: %v", scope.name, scope.mode, err).fix("agent config set sandbox.%s auto", scope.name)
		}
		if level == sandbox.None {
			bare = append(bare, scope.name)
		}
		parts = append(parts, fmt.Sprintf("%s %s", scope.name, level))
	}
	text := strings.Join(parts, ", ")
	if len(bare) == 0 {
		return found(healthOK, "%s", text)
	}
	return found(healthWarn, "%s: what is not confined can do what you can do; the permission policy is the only guard", text).
		fix("see the levels below and the settings sandbox.*; use a container or a virtual machine for what you do not trust")
}

// sandboxLevels returns a check for each level of this system.
func (d *doctor) sandboxLevels() []check {
	var list []check
	for _, level := range sandbox.SystemLevels() {
		list = append(list, check{level.String(), func(ctx context.Context) finding {
			s := d.commands.Sandbox().Status(ctx, level)
			if s.Works {
				return found(healthOK, "this level of the sandbox works here")
			}
			return found(healthWarn, "this level of the sandbox does not work here: %s", s.Reason).fix("see docs/sandbox.md for what the levels need")
		}})
	}
	return list
}
