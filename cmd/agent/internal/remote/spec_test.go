package remote

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/permissions"
)

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "null": "", "{}": "", `{"model":"a/b","permissionMode":"plan","dir":"/srv"}`: "",
		`{"mod":"x"}`: "unknown field", `{} {}`: "text after the object", `1`: "cannot unmarshal", `{"permissionMode":"all"}`: `permissionMode is "all"`, `{"dir":"srv"}`: "absolute path",
	} {
		_, err := ParseSpec([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestSpecOf(t *testing.T) {
	spec, err := SpecOf(map[string]string{"on": "u", "model": "m", "permission-mode": "plan", "cd": "/srv", "max-rounds": "3", "max-cost": "1.5", "output-format": "json"})
	if want := (Spec{Model: "m", Mode: "plan", Dir: "/srv", MaxRounds: 3, MaxCost: 1.5}); err != nil || spec != want {
		t.Errorf("spec %+v, %v", spec, err)
	}
	if _, err := SpecOf(map[string]string{"provider": "p"}); err == nil || !strings.Contains(err.Error(), "--model PROVIDER/MODEL") {
		t.Errorf("--provider: %v", err)
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
