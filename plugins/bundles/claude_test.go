package bundles

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/subagent"
)

func TestFromClaude(t *testing.T) {
	d := FromClaude(subagent.Definition{
		Tools: []string{"Read", "Bash(git *)", "mcp__github__get_issue", "Frobnicate"}, Disallowed: []string{"Write"}, Model: "Haiku",
	})
	if got := strings.Join(d.Tools, " "); got != "read_file read_many_files shell job write_stdin github_get_issue Frobnicate" {
		t.Errorf("tools %s", got)
	}
	if strings.Join(d.Disallowed, " ") != "write_file" || d.Model != "" {
		t.Errorf("%+v", d)
	}
	if d := FromClaude(subagent.Definition{Tools: []string{"*"}, Model: "claude-haiku-4-5"}); d.Tools != nil || d.Model != "claude-haiku-4-5" {
		t.Errorf("%+v", d)
	}
}
