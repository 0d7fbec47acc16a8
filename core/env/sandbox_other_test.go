//go:build !linux

package env

import (
	"errors"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// TestRequiredSandbox: requiring a level that does not work is an error, and
// nothing runs.
func TestRequiredSandbox(t *testing.T) {
	l, err := NewLocal(LocalOptions{Dir: t.TempDir(), Sandbox: &Sandbox{Shell: sandbox.ModeNamespace}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = l.Start(t.Context(), core.Command{Script: "echo x", Grants: []core.Grant{grant(core.ScopeShell, "echo x")}})
	if !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}
