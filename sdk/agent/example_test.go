package agent_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestExampleModule runs the example, which is a separate module, as a user
// of the library would.
func TestExampleModule(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = "example"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go run .: %v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "Take an umbrella, it rains in Oslo." {
		t.Errorf("the example printed %q", got)
	}
}

// scriptedModel stands for a real model, such as langchain.Local.
func scriptedModel(turns string) model.Provider {
	script, err := scripted.Parse("example", []byte("name: example\nturns:\n"+turns))
	if err != nil {
		panic(err)
	}
	return script.Provider(scripted.Options{})
}

func ExampleOpen() {
	ctx := context.Background()
	provider := scriptedModel("  - {when: {user: Hello}, text: Good day!}\n")
	a, err := agent.Open(ctx, agent.Options{Dir: "."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: provider})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	out, err := s.Submit(ctx, core.TextInput("Hello!"))
	fmt.Println(out.Text, out.Stop, err)
	// Output: Good day! done <nil>
}

// A tool of the host needs a permission for what it accesses, here for a host.
func ExampleOptions() {
	type args struct {
		City string `json:"city"`
	}
	forecast := core.NewTool(
		core.ToolDefinition{Name: "forecast", Description: "Weather forecast for a city.", ReadOnly: true},
		func(context.Context, *core.Call, args) ([]core.Access, error) {
			return []core.Access{{Scope: core.ScopeNetwork, Resource: "api.example.com"}}, nil
		},
		func(_ context.Context, _ *core.Call, in args) (core.Result, error) {
			return core.TextResult(in.City + ": rain"), nil
		})

	ctx := context.Background()
	a, err := agent.Open(ctx, agent.Options{
		Tools: []core.Tool{forecast}, NoBuiltins: true,
		Permissions: permissions.Options{Sets: []permissions.RuleSet{{
			Source:   permissions.SourceUser,
			Settings: permissions.Settings{Allow: []string{"network(api.example.com)"}},
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: scriptedModel(`
  - {when: {user: weather}, calls: [{name: forecast, args: {city: Oslo}}]}
  - {when: {tool: forecast, result: rain}, text: Take an umbrella.}
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	out, err := s.Submit(ctx, core.TextInput("What is the weather in Oslo?"))
	fmt.Println(out.Text, err)
	// Output: Take an umbrella. <nil>
}

// Events report what a session does, past events included.
func ExampleSession() {
	ctx := context.Background()
	a, err := agent.Open(ctx, agent.Options{Dir: "."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: scriptedModel(`
  - {when: {user: List}, calls: [{name: list_dir, args: {path: example}}]}
  - {when: {tool: list_dir}, text: A small program.}
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.Submit(ctx, core.TextInput("List the example.")); err != nil {
		fmt.Println(err)
	}
	s.Close()
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			break
		}
		if call, ok := e.Body.(event.ToolResult); ok {
			fmt.Println("called", call.Name)
		}
	}
	// Output: called list_dir
}

// A journal of the host keeps a session, which another process can resume.
func ExampleSessionOptions_journal() {
	ctx := context.Background()
	a, err := agent.Open(ctx, agent.Options{Dir: "."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	journal := &coretest.MemoryJournal{} // instead of a database
	for _, answer := range []string{"Good day!", "As I said."} {
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: coretest.Model(coretest.Say(answer)), ID: "greeting", Journal: journal})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := s.Submit(ctx, core.Input{ID: answer, Content: model.TextParts("Hello!")})
		fmt.Println(out.Text, len(s.Messages()), err)
		if err := s.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// Good day! 2 <nil>
	// As I said. 4 <nil>
}
