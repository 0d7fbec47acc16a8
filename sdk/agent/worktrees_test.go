package agent_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestIsolatedSubagent: two subagents change the same file in worktrees. The parent
// applies what one changed, keeps the other's as a branch, and can undo the first;
// nothing is left in the end.
func TestIsolatedSubagent(t *testing.T) {
	needShell(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	home := filepath.Join(t.TempDir(), ".agent")
	a, dir := open(t, func(o *agent.Options) {
		o.Permissions.Mode, o.Home = permissions.ModeBypass, home
	}, map[string]string{"a.txt": "old\n"})
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-qm", "first")
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	out, s := talk(t, a, agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
		text := last(req)
		switch {
		case isChild(req) && len(req.Messages) == 1:
			word, _, _ := strings.Cut(text, "\n")
			return coretest.CallTools(model.ToolCall{Name: "shell", Args: fmt.Sprintf(`{"command":"git status --short; git stash list; echo %s >a.txt; touch %[1]s.txt; git branch --show-current"}`, word)})
		case isChild(req):
			seen = append(seen, text)
			return coretest.Say("changed it")
		case text == "go":
			return coretest.CallTools(spawn("one", `,"isolation":"worktree"`), spawn("two", `,"isolation":"worktree"`))
		case strings.Contains(text, "agent-1 is running. "):
			return coretest.CallTools(on("wait", "agent-1", ""), on("wait", "agent-2", ""))
		case strings.Contains(text, "Agent agent-2 is done"):
			seen = append(seen, "agent/"+text)
			return coretest.CallTools(on("apply_result", "agent-1", `,"action":"branch","branch":"a b"`),
				on("apply_result", "agent-1", ""), on("apply_result", "agent-2", ""), on("apply_result", "agent-2", `,"action":"branch","branch":"second"`), on("apply_result", "agent-2", `,"action":"drop"`))
		}
		return coretest.Say(text)
	})})
	for _, want := range []string{
		`branch "a b" is invalid`, "modify a.txt +1 -1", "-old\n+one", "create two.txt", "The changes of agent agent-1 are in the workspace",
		"a.txt: it was changed since", "Branch second has what agent agent-2 changed", "is dropped",
	} {
		if all := out.Text + strings.Join(seen, "\n"); !strings.Contains(all, want) {
			t.Errorf("no %q in the results:\n%s", want, all)
		}
	}
	for _, text := range seen {
		if !strings.HasPrefix(text, "agent/") {
			t.Errorf("in the worktree: %q", text)
		}
	}
	read := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		return string(data)
	}
	if read("a.txt") != "one\n" || git("show", "second:a.txt") != "two" || git("log", "--format=%s", "main") != "first" || read(".git/index") != string(index) {
		t.Errorf("a.txt %q, on the branch %q, main %q, the index changed: %v", read("a.txt"), git("show", "second:a.txt"), git("log", "--format=%s", "main"), read(".git/index") != string(index))
	}
	if _, err := s.Undo(t.Context(), agent.UndoOptions{}); err != nil || read("a.txt") != "old\n" {
		t.Errorf("undo: a.txt %q, %v", read("a.txt"), err)
	}
	if err := errors.Join(s.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(home + "-worktrees/*/*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
