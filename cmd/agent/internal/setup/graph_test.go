package setup

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
)

func TestGraphOff(t *testing.T) {
	t.Parallel()
	const on = "`agent config set graph.enabled on`"
	for name, tt := range map[string]struct {
		set  func(*Setup)
		want string // empty: it is on
	}{
		"few files":      {func(*Setup) {}, on},
		"off":            {func(s *Setup) { s.Settings.Graph.Enabled = "off" }, on},
		"no plugins":     {func(s *Setup) { s.Settings.Plugins.Enabled = false }, "`agent config set plugins.enabled true`"},
		"bare":           {func(s *Setup) { s.bare = true }, "`--bare`"},
		"a container":    {func(s *Setup) { s.Environment.kind = "docker" }, "of this machine"},
		"on by settings": {func(s *Setup) { s.Settings.Graph.Enabled = "on" }, ""},
	} {
		s := &Setup{Dir: t.TempDir(), Loaded: &config.Loaded{}, Environment: Environment{kind: "local"}}
		s.Settings.Plugins.Enabled, s.Settings.Graph.Enabled = true, "auto"
		tt.set(s)
		if got := s.GraphOff(); got == "" != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
