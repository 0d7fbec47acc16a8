package permissions_test

import (
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

func TestWithDenied(t *testing.T) {
	p, err := permissions.New(permissions.Options{Home: "/home/u", Workspace: []string{"/w"}, Mode: permissions.ModeBypass})
	if err != nil {
		t.Fatal(err)
	}
	stricter, err := p.WithDenied([]string{"fs-write(./a/**)"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(p *permissions.Policy, path string) core.Verdict {
		return p.Decide(t.Context(), core.PermissionRequest{
			Tool: "write_file", Source: "builtin", Accesses: []core.Access{{Scope: core.ScopeWrite, Resource: path, Inside: true}},
		}).Verdict
	}
	if write(stricter, "/w/a/x") != core.Deny || write(stricter, "/w/b") != core.Allow || write(p, "/w/a/x") != core.Allow {
		t.Error("the rule does not deny what it matches, and only that")
	}
	if again, err := stricter.WithDenied([]string{"fs-write(./b)"}); err != nil || write(again, "/w/a/x") != core.Deny || write(again, "/w/b") != core.Deny {
		t.Errorf("a second rule replaces the first: %v", err)
	}
	if _, err := p.WithDenied([]string{"fs-write("}); err == nil {
		t.Error("an invalid rule is taken")
	}
}
