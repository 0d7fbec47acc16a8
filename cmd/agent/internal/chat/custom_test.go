package chat

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
)

func TestCustomCommandNames(t *testing.T) {
	var got []string
	for _, c := range withCustom([]tui.Command{{Name: "model"}}, []setup.CustomCommand{
		{Name: "model", Scope: "project", Body: "x"}, {Name: "fix", Scope: "project", Body: "x"}, {Name: "fix", Scope: "user", Body: "x"}, {Name: "help", Scope: "user", Body: "x"},
	}, "") {
		got = append(got, c.Name)
	}
	if want := "model project:model fix user:fix user:help"; strings.Join(got, " ") != want {
		t.Errorf("commands %q, want %q", got, want)
	}
}
