package bundles

import (
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/skills"
)

// claudeTools maps the tools of Claude Code to those that do the same here.
var claudeTools = map[string][]string{
	"Read": {"read_file", "read_many_files"}, "Write": {"write_file"}, "Edit": {"edit_file", "apply_patch"}, "MultiEdit": {"edit_file", "apply_patch"},
	"Bash": {"shell", "job", "write_stdin"}, "BashOutput": {"job"}, "KillShell": {"job"}, "Glob": {"glob"}, "Grep": {"grep"}, "LS": {"list_dir"},
	"WebFetch": {"web_fetch"}, "TodoWrite": {"update_plan"}, "AskUserQuestion": {"ask_user"}, "Skill": {"skill"},
	"Task": {"spawn_agent", "send_input", "wait", "close_agent"}, "Agent": {"spawn_agent", "send_input", "wait", "close_agent"},
}

// FromClaude translates an agent type that was written for Claude Code. Names of
// tools that it does not know stay: a list of tools never becomes the empty one,
// which means all.
func FromClaude(d subagent.Definition) subagent.Definition {
	if skills.SessionModel(d.Model) {
		d.Model = ""
	}
	if slices.Contains(d.Tools, "*") {
		d.Tools = nil
	}
	d.Tools, d.Disallowed = claudeNames(d.Tools), claudeNames(d.Disallowed)
	return d
}

func claudeNames(tools []string) (names []string) {
	for _, tool := range tools {
		plain, _, _ := strings.Cut(tool, "(") // Bash(git *)
		switch here, known := claudeTools[plain]; {
		case known:
			names = append(names, here...)
		case strings.HasPrefix(tool, "mcp__"):
			names = append(names, strings.Replace(strings.TrimPrefix(tool, "mcp__"), "__", "_", 1))
		default:
			names = append(names, tool)
		}
	}
	return names
}
