package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestDetach lets go of a session whose subagent asks a question, and resumes it: the
// subagent asks again, its call runs once, and nothing was recorded as cancelled.
func TestDetach(t *testing.T) {
	home, ran := t.TempDir(), 0
	deploy := core.NewTool(core.ToolDefinition{Name: "deploy", Description: "Deploys."},
		func(context.Context, *core.Call, struct{}) ([]core.Access, error) {
			return core.UnknownAccess("deploy"), nil
		},
		func(context.Context, *core.Call, struct{}) (core.Result, error) {
			ran++
			return core.TextResult("deployed"), nil
		})
	provider := byRequest(func(req *model.Request) coretest.Turn {
		text := last(req)
		switch {
		case isChild(req) && text == "deploy it":
			return coretest.CallTools(model.ToolCall{Name: "deploy", Args: "{}"})
		case text == "go":
			return coretest.CallTools(spawn("deploy it", ""))
		case strings.Contains(text, "is running"):
			return coretest.CallTools(on("wait", "agent-1", ""))
		}
		return coretest.Say("It says: " + text)
	})
	opened := func(resume string, asker coretest.Asker) *agent.Session {
		a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Home: home, Tools: []core.Tool{deploy}, Policy: durablePolicy{}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: provider, Asker: asker, Resume: resume})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(s.Close(), a.Close()) })
		return s
	}
	asked := make(chan struct{})
	first := opened("", func(ctx context.Context, _ core.Question) (core.Answer, error) {
		close(asked)
		<-ctx.Done()
		return core.Answer{}, ctx.Err()
	})
	ended := make(chan error, 1)
	go func() {
		_, err := first.Submit(t.Context(), core.TextInput("go"))
		ended <- err
	}()
	<-asked
	if err := first.Detach(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, core.ErrDetached) {
		t.Errorf("the input ends with %v", err)
	}
	logs, err := filepath.Glob(filepath.Join(agent.SessionsDir(home), "*.jsonl"))
	if err != nil || len(logs) != 2 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	for _, name := range logs {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range []string{"cancelled", "session_end", "subagent_end"} {
			if strings.Contains(string(log), `"type":"`+event+`"`) {
				t.Errorf("%s is recorded: %s", event, log)
			}
		}
	}
	again := opened(first.ID(), func(context.Context, core.Question) (core.Answer, error) {
		return core.Answer{Choice: core.ChoiceOnce}, nil
	})
	out, err := again.Submit(t.Context(), core.Input{})
	if err != nil || !strings.Contains(out.Text, "It says: deployed") || ran != 1 {
		t.Errorf("resumed: %+v, %v; deploy ran %d times", out, err, ran)
	}
}
