package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// keptQuestions is an Asker that denies everything and remembers the questions.
type keptQuestions struct{ all []core.Question }

func (k *keptQuestions) Ask(_ context.Context, q core.Question) (core.Answer, error) {
	k.all = append(k.all, q)
	return core.Answer{Choice: core.ChoiceDeny}, nil
}

// TestQuestionShowsChanges: the question about a command that deletes files shows
// what it would change; that about another command does not run it.
func TestQuestionShowsChanges(t *testing.T) {
	needShell(t)
	a, dir := open(t, func(o *agent.Options) { o.Permissions.Mode = permissions.ModeDefault }, map[string]string{"d/a.txt": "a\n", "b.txt": "b\n"})
	if l, ok := a.Env().(*env.Local); !ok || !l.Layers() {
		t.Skip("needs the sandbox level namespace")
	}
	kept := &keptQuestions{}
	_, _ = talk(t, a, agent.SessionOptions{Asker: kept, Provider: byRequest(func(req *model.Request) coretest.Turn {
		if last(req) != "go" {
			return coretest.Say("done")
		}
		return coretest.CallTools(model.ToolCall{Name: "shell", Args: `{"command":"rm -r d; echo B >b.txt"}`}, model.ToolCall{Name: "shell", Args: `{"command":"touch made"}`})
	})})
	if len(kept.all) != 2 {
		t.Fatalf("%d questions", len(kept.all))
	}
	if got, want := kept.all[0].Detail, "it would:\n  modify \"b.txt\"\n  delete \"d\" and what is below (1)"; !strings.Contains(got, want) {
		t.Errorf("detail %q, want %q", got, want)
	}
	if strings.Contains(kept.all[1].Detail, "copy of the workspace") {
		t.Errorf("detail %q", kept.all[1].Detail)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "d", "a.txt")); err != nil || string(data) != "a\n" {
		t.Errorf("d/a.txt: %q, %v", data, err)
	}
}
