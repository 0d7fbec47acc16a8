package permissions_test

import (
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/permissions"
)

func ExampleNew() {
	files := env.NewMemory("/work", map[string]string{"go.mod": "module x"})
	p, err := permissions.New(permissions.Options{
		Workspace: []string{"/work"}, Env: files, Shell: "bash",
		Sets: []permissions.RuleSet{{Source: permissions.SourceUser, Settings: permissions.Settings{
			Allow: []string{"shell(go test *)"}, Deny: []string{"shell(git push *)"},
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range []string{"cat go.mod | head -1", "go test ./... && git push", "go test ./... > log"} {
		d := p.Decide(context.Background(), core.PermissionRequest{
			Tool: "shell", Session: core.SessionInfo{Dir: "/work"},
			Accesses: []core.Access{{Scope: core.ScopeShell, Resource: line}},
		})
		fmt.Println(line+":", d.Verdict, "by", d.Rule)
	}
	// Output:
	// cat go.mod | head -1: allow by mode default
	// go test ./... && git push: deny by shell(git push *)
	// go test ./... > log: ask by mode default
}
