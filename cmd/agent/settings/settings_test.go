package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/settings"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

const file = `{"version": 1,
	"providers": {"default": "local", "local": {"baseUrl": "http://127.0.0.1:9/v1", "model": "fake-1"}},
	"permissions": {"mode": "read-only"},
	"agent": {"maxRounds": 7}}`

func load(t *testing.T, text string, set ...string) (*settings.Settings, error) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AGENT_HOME", filepath.Join(home, "agent"))
	if err := os.Mkdir(filepath.Join(home, "agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "agent", "settings.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings.Load(settings.Options{Dir: t.TempDir(), Set: set})
}

func TestSession(t *testing.T) {
	s, err := load(t, file, "agent.maxTurns=9")
	if err != nil {
		t.Fatal(err)
	}
	options, err := s.Agent()
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	session, err := s.Session(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if info := session.Provider.Info(); info.Name != "local" || info.Model != "fake-1" || session.Limits.MaxRounds != 7 || session.Limits.MaxTurns != 9 {
		t.Errorf("provider %+v, limits %+v", info, session.Limits)
	}
	session.Provider = coretest.Model(coretest.CallTools(model.ToolCall{Name: "write_file", Args: `{"file_path":"x","content":"y"}`}), coretest.Say("Done."))
	run, err := a.NewSession(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	out, err := run.Submit(t.Context(), core.TextInput("write"))
	if err != nil || out.Text != "Done." || len(out.Denied) != 1 || !strings.Contains(out.Denied[0].Rule, "read-only") {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if !strings.HasPrefix(run.Log(), options.Home) {
		t.Errorf("the log is %s, not in %s", run.Log(), options.Home)
	}
}

func TestProviderByName(t *testing.T) {
	s, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "fake-1", "local": "fake-1", "local/other": "other", "third": "third"} {
		if p, err := s.Provider(t.Context(), name); err != nil || p.Info().Model != want || p.Info().Name != "local" {
			t.Errorf("provider %q: %v, %v", name, p, err)
		}
	}
	t.Setenv("OPENAI_API_KEY", "")
	if _, err := s.Provider(t.Context(), "openai"); err == nil {
		t.Error("a provider without a key is opened")
	}
}

func TestWrongSettings(t *testing.T) {
	if _, err := load(t, `{"version": 1, "agent": {"maxRounds": "seven"}}`); err == nil || !strings.Contains(err.Error(), "settings.json:1:") {
		t.Errorf("error %v", err)
	}
}
