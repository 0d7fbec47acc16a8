package permissions_test

import (
	"testing"

	"github.com/seed-009c0928/agent/permissions"
)

func TestSpellingsOfACharacter(t *testing.T) {
	p := newPolicy(t, options(permissions.ModeBypass, user(settings("", "", "fs-write(./\u00c4/**)"))))
	for _, name := range []string{"/\u00c4/x", "/A\u0308/x", "/a\u0308/x"} {
		if d := p.Decide(t.Context(), request("t", write(ws+name))); d.Verdict != deny {
			t.Errorf("%q: %s", name, d.Verdict)
		}
	}
}
