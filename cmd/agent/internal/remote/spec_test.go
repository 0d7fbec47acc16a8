package remote

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "null": "", "{}": "", `{"model":"a/b","permissionMode":"plan"}`: "",
		`{"mod":"x"}`: "unknown field", `{} {}`: "text after the object", `1`: "cannot unmarshal", `{"permissionMode":"all"}`: `permissionMode is "all"`,
	} {
		_, err := ParseSpec([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestSessionOf(t *testing.T) {
	n, err := SessionOf(map[string]string{"on": "u", "model": "m", "permission-mode": "plan", "cd": "/srv", "max-rounds": "3", "max-cost": "1.5", "output-format": "json"})
	if want := `{"model":"m","permissionMode":"plan","maxRounds":3,"maxCostUsd":1.5}`; err != nil || string(n.Spec) != want || n.Workspace.Directory != "/srv" {
		t.Errorf("session %+v with %s, %v", n, n.Spec, err)
	}
	if n, err := SessionOf(nil); err != nil || n.Workspace.Directory != workspace.New {
		t.Errorf("without flags: %+v, %v", n, err)
	}
	for name, want := range map[string]string{"provider": "--model PROVIDER/MODEL", "cd": "absolute path"} {
		if _, err := SessionOf(map[string]string{name: "p"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--%s: %v", name, err)
		}
	}
	if Kept(map[string]string{"cd": "/srv"}) || Kept(map[string]string{"model": "m"}) || !Kept(map[string]string{"on": "u", "resume": "s"}) {
		t.Error("Kept is wrong")
	}
}

func TestWithin(t *testing.T) {
	order := []permissions.Mode{permissions.ModePlan, permissions.ModeDefault, permissions.ModeWorkspace, permissions.ModeBypass}
	for i, a := range order {
		for j, b := range order {
			if Within(a, b) != (i <= j) {
				t.Errorf("Within(%s, %s) is %v", a, b, i > j)
			}
		}
	}
	for _, m := range permissions.Modes() {
		if !Within(m, m) || !Within(m, permissions.ModeBypass) {
			t.Errorf("mode %s has no place", m)
		}
	}
}
