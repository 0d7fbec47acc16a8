package core_test

import (
	"context"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
)

// TestRestrictHandsGrantsToTheCommand: the sandbox of a command depends on the
// grants of its call.
func TestRestrictHandsGrantsToTheCommand(t *testing.T) {
	memory := env.NewMemory("", nil)
	var started core.Command
	memory.Exec = func(_ context.Context, cmd core.Command) (core.Exit, error) {
		started = cmd
		return core.Exit{}, nil
	}
	grants := []core.Grant{
		{Access: core.Access{Scope: core.ScopeWrite, Resource: "/workspace", Recursive: true}},
		{Access: core.Access{Scope: core.ScopeShell, Resource: "git log", Unconfined: true}, Env: []string{"GIT_CONFIG_NOSYSTEM=1"}},
	}
	restricted := core.Restrict(memory, grants, nil)
	own := []string{"A=b", "C=d"}
	if _, _, err := core.Exec(t.Context(), restricted, core.Command{Script: "git log", Env: own[:1]}); err != nil {
		t.Fatal(err)
	}
	if len(started.Grants) != 2 || !started.Grants[1].Unconfined {
		t.Errorf("the command has the grants %+v", started.Grants)
	}
	if want := []string{"A=b", "GIT_CONFIG_NOSYSTEM=1"}; !slices.Equal(started.Env, want) {
		t.Errorf("its environment is %q, want %q", started.Env, want)
	}
	if own[1] != "C=d" {
		t.Error("the caller's environment was modified")
	}
	if _, err := restricted.Start(t.Context(), core.Command{Script: "git log -p"}); err == nil {
		t.Error("a command that was not granted was started")
	}
}
