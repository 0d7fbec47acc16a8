package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// checkSandbox reports how child processes are confined.
func (d *doctor) checkSandbox(ctx context.Context) finding {
	set := config.Sandbox{Shell: string(sandbox.ModeAuto), Skills: string(sandbox.ModeAuto), Plugins: string(sandbox.ModeAuto), MCP: string(sandbox.ModeAuto)}
	if d.set != nil {
		set = d.set.Settings.Sandbox
	}
	var parts, unconfined []string
	for _, scope := range []struct{ name, mode string }{
		{"shell", set.Shell}, {"skills", set.Skills}, {"plugins", set.Plugins}, {"mcp", set.MCP},
	} {
		level, err := d.commands.Sandbox().Choose(ctx, sandbox.Mode(scope.mode))
		if err != nil {
			return found(healthFail, "sandbox.%s is %s: %v", scope.name, scope.mode, err).fix("agent config set sandbox.%s auto", scope.name)
		}
		if level == sandbox.None {
			unconfined = append(unconfined, scope.name)
		}
		parts = append(parts, fmt.Sprintf("%s %s", scope.name, level))
	}
	text := strings.Join(parts, ", ")
	if len(unconfined) == 0 {
		return found(healthOK, "%s", text)
	}
	return found(healthWarn, "%s: unconfined processes have all your rights; only the permission policy protects you", text).
		fix("see the levels below and the settings sandbox.*; run untrusted code in a container or virtual machine")
}

// sandboxLevels returns a check for each sandbox level of this system.
func (d *doctor) sandboxLevels() []check {
	var list []check
	for _, level := range sandbox.SystemLevels() {
		list = append(list, check{level.String(), func(ctx context.Context) finding {
			s := d.commands.Sandbox().Status(ctx, level)
			if s.Works {
				return found(healthOK, "this sandbox level works here")
			}
			return found(healthWarn, "this sandbox level does not work here: %s", s.Reason).fix("see docs/sandbox.md for the requirements of each level")
		}})
	}
	return list
}
