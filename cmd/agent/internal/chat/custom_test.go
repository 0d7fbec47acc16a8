package chat

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/model"
)

func TestCustomCommandNames(t *testing.T) {
	var got []string
	for _, c := range withCustom([]tui.Command{{Name: "model"}}, []setup.CustomCommand{
		{Name: "model", Scope: "project", Body: "x"}, {Name: "fix", Scope: "project", Body: "x"}, {Name: "fix", Scope: "user", Body: "x"}, {Name: "help", Scope: "user", Body: "x"}, {Name: "keys", Scope: "user", Body: "x"},
	}, "") {
		got = append(got, c.Name)
	}
	if want := "model project:model fix user:fix user:help user:keys"; strings.Join(got, " ") != want {
		t.Errorf("commands %q, want %q", got, want)
	}
}

// TestImpactWithoutTheGraph: without the plugin, /impact says why there is no answer,
// and what to do.
func TestImpactWithoutTheGraph(t *testing.T) {
	for why, want := range map[string]string{"It is off.": "It is off.", "": "`/plugins`"} {
		commands := withImpact([]tui.Command{{Name: "model"}}, func() string { return why })
		if len(commands) != 2 || commands[1].Name != "impact" {
			t.Fatalf("commands %v", commands)
		}
		r, err := commands[1].Run(t.Context(), "main")
		if err != nil || !strings.Contains(r.Text, want) || !strings.Contains(r.Text, "`agent graph impact NAME`") {
			t.Errorf("/impact: %q, %v; want %q", r.Text, err, want)
		}
	}
	if commands := withImpact([]tui.Command{{Name: "impact"}}, nil); len(commands) != 1 {
		t.Errorf("the plugin's command is not the only one: %v", commands)
	}
}

// TestContextAfterAFailure: a failed call does not empty the context in the status line.
func TestContextAfterAFailure(t *testing.T) {
	c := &chat{}
	count := c.count(func(string, string, model.Usage) (float64, bool) { return 0, false })
	count("p", "m", model.Usage{Input: 900, Output: 100})
	count("p", "m", model.Usage{})
	if c.last.Total() != 1000 || c.usage.Total() != 1000 {
		t.Errorf("last %+v, all %+v", c.last, c.usage)
	}
}
