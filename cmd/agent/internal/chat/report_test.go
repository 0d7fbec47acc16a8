package chat

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/hooks"
)

func TestHooksPage(t *testing.T) {
	if got := hooksPage(nil, nil); !strings.Contains(got, "No hooks") {
		t.Errorf("without hooks: %q", got)
	}
	defs := []hooks.Definition{{Event: hooks.Events()[0], Matcher: "Write|Edit", Handler: hooks.Handler{Type: "command", Command: "sh `x` | *y*"}, Source: hooks.Source{Name: "user settings"}}}
	got := hooksPage(defs, []hooks.Problem{{Source: hooks.Source{Name: "project settings"}, Text: "bad matcher"}})
	for _, want := range []string{"| Event | Matcher |", "| `Write/Edit` ", "| `sh 'x' / *y*` ", "| `user settings` |", "- not used: ", "bad matcher"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
