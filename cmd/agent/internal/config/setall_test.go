package config

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSetAll checks that several keys are set, or none.
func TestSetAll(t *testing.T) {
	target := UserFile(t.TempDir())
	good := []Change{{"providers.default", "openai"}, {"agent.maxRounds", "3"}}
	if err := target.SetAll(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(target.Path)
	if err != nil || !strings.Contains(string(want), `"default": "openai"`) || !strings.Contains(string(want), `"maxRounds": 3`) {
		t.Fatalf("settings %s, %v", want, err)
	}
	err = target.SetAll(t.Context(), []Change{{"agent.maxRounds", "4"}, {"providers.openai.baseUrl", "nonsense"}})
	if err == nil || !strings.Contains(err.Error(), "providers.openai.baseUrl") {
		t.Errorf("error %v", err)
	}
	if got, err := os.ReadFile(target.Path); err != nil || string(got) != string(want) {
		t.Errorf("settings %s, %v; want them as they were", got, err)
	}
}

func TestVariables(t *testing.T) {
	got := Variables()
	for _, want := range []string{"AGENT_HOME", "AGENT_MODEL", "AGENT_PROVIDER", "OPENAI_API_KEY"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}
