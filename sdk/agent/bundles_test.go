package agent_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// claudePlugin is the folder of a plugin for Claude Code.
func claudePlugin(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "careful")
	for name, text := range map[string]string{
		".claude-plugin/plugin.json": `{"name": "careful", "userConfig": {"token": {"type": "string", "title": "Token", "description": "Of the service", "sensitive": true}, "word": {"type": "string", "title": "Word", "description": "To say", "default": "please"}}}`,
		"skills/polite/SKILL.md":     "---\nname: polite\ndescription: How to ask politely.\n---\nSay ${user_config.word}.\n",
		"agents/reader.md":           "---\nname: reader\ndescription: Reads.\ntools: Read\n---\nRead.\n",
		"hooks/hooks.json":           `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo not ${CLAUDE_PLUGIN_ROOT} >&2; exit 2"}]}]}}`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestBundle gives a session what a plugin for Claude Code holds.
func TestBundle(t *testing.T) {
	needShell(t)
	dir := claudePlugin(t)
	home := ""
	a, _ := open(t, func(o *agent.Options) {
		home = o.Home
		o.Bundles = []agent.Bundle{{Dir: dir, Settings: map[string]string{"word": "if you like", "token": "s3cr3t-t0ken"}}}
	}, nil)
	call := shellCall("touch made; echo s3cr3t-t0ken")
	call.Calls = append(call.Calls, model.ToolCall{ID: "c2", Name: "skill", Args: `{"action": "load", "name": "careful:polite"}`})
	_, p, events, err := submit(t, a, agent.SessionOptions{}, call, coretest.Say("Done."))
	if err != nil {
		t.Fatal(err)
	}
	requests := p.Requests()
	sent := fmt.Sprint(requests[len(requests)-1])
	for _, want := range []string{"not " + dir, "Say if you like.", "careful:reader"} {
		if !strings.Contains(sent, want) {
			t.Errorf("the model does not get %q: %s", want, sent)
		}
	}
	if ran := coretest.Bodies[event.Hook](events); len(ran) != 1 || ran[0].Decision != "deny" || ran[0].Source != "plugin careful" {
		t.Errorf("hooks = %+v", ran)
	}
	logged := 0
	err = filepath.WalkDir(agent.SessionsDir(home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		logged += len(data)
		if strings.Contains(string(data), "s3cr3t") {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil || logged == 0 {
		t.Errorf("%d bytes logged, %v", logged, err)
	}
}

func TestBundleErrors(t *testing.T) {
	dir := claudePlugin(t)
	for want, b := range map[string]agent.Bundle{
		"either a Name or a Dir":               {},
		`no plugin "absent" with files to use`: {Name: "absent"},
		"the plugin in":                        {Dir: t.TempDir()},
		`it has no setting "wrod"`:             {Dir: dir, Settings: map[string]string{"wrod": "x"}},
	} {
		if a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Home: t.TempDir(), Bundles: []agent.Bundle{b}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
			if err == nil {
				_ = a.Close()
			}
		}
	}
	if _, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Bundles: []agent.Bundle{{Dir: dir}}}); err == nil || !strings.Contains(err.Error(), "need a Home") {
		t.Error(err)
	}
}
