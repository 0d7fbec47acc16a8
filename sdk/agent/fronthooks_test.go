package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestMisspeltTool: a rule of "if" that matches nothing is named.
func TestMisspeltTool(t *testing.T) {
	for rule, want := range map[string]string{
		"Bashh(git push *)":       "there is no tool Bashh; did you mean Bash?",
		"bash(git push *)":        "there is no tool bash; did you mean Bash?",
		"WebFecth(domain:x.test)": "there is no tool WebFecth; did you mean WebFetch?",
		"WebSearch(go *)":         "rules cannot name the tool WebSearch; use the matcher",
		"AskUserQuestion":         "rules cannot name the tool AskUserQuestion; use the matcher",
		"Edits":                   "there is no tool Edits; did you mean Edit?",
		"Bash(git push *)":        "",
		"LS":                      "",
		"shell(git push *)":       "",
		"mcp__github__get_issue":  "",
		"weather(city)":           "",
		"grep":                    "",
		"web_fetch":               "",
	} {
		text := fmt.Sprintf(`{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true", "if": %q}]}]}}`, rule)
		defs, problems, err := agent.ParseHooks(hooks.Source{Name: "test"}, []byte(text))
		if err != nil || len(defs) != 1 || len(problems) > 1 || (want == "") != (len(problems) == 0) || want != "" && !strings.Contains(problems[0].Text, want) {
			t.Errorf("%s: %d hooks, problems %v, %v; want %q", rule, len(defs), problems, err, want)
		}
	}
}
