package agent_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestExampleModule runs the example, which is a module of its own, as a user
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

func ExampleOpen() {
	ctx := context.Background()
	script, err := scripted.Parse("greeting", []byte("name: greeting\nturns:\n  - {when: {user: Hello}, text: Good day!}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := agent.Open(ctx, agent.Options{Dir: "."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: script.Provider(scripted.Options{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	out, err := s.Submit(ctx, core.TextInput("Hello!"))
	fmt.Println(out.Text, out.Stop, err)
	// Output: Good day! done <nil>
}
