package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/profile"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestLiveSmoke uses real models: it runs for every provider whose key is
// set, if AGENT_LIVE is set.
func TestLiveSmoke(t *testing.T) {
	keys := map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}
	models := map[string]string{"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
	ran := 0
	for _, col := range columns() {
		key := os.Getenv(keys[col.profile])
		if os.Getenv("AGENT_LIVE") == "" || key == "" {
			continue
		}
		ran++
		t.Run(col.profile, func(t *testing.T) {
			p, err := col.open(wire.Config{APIKey: key, Model: models[col.profile]})
			if err != nil {
				t.Fatal(err)
			}
			prof, err := profile.New(col.profile, col.profile, models[col.profile], profile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a, dir := open(t, nil, map[string]string{"big.txt": strings.Repeat("a line of a large file\n", 10_000)})
			s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: p, Profile: prof, Limits: core.Limits{MaxRounds: 20, CommandTimeout: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			events := coretest.Collect(t, s, nil)
			for _, task := range []string{
				"Create a file called hello.py that prints 'Hello World'.",
				"Read hello.py and add a second print statement that says 'Goodbye'.",
				"Run the shell command: cat hello.py",
				"Read big.txt and tell me how it begins.",
			} {
				if out, err := s.Submit(t.Context(), core.TextInput(task)); err != nil || out.Rounds == 0 {
					t.Fatalf("%s: %d rounds, %v", task, out.Rounds, err)
				}
			}
			text, err := os.ReadFile(filepath.Join(dir, "hello.py"))
			if err != nil || !strings.Contains(string(text), "Hello") || !strings.Contains(string(text), "Goodbye") {
				t.Errorf("hello.py: %s, %v", text, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			cut := false
			for _, r := range coretest.Bodies[event.ToolResult](events.Drain(t)) {
				cut = cut || r.Output != nil && strings.Contains(r.Content.Text(), "truncated")
			}
			if !cut {
				t.Error("the large file was not cut for the model")
			}
		})
	}
	if ran == 0 {
		t.Skip("AGENT_LIVE and a provider's key are not set")
	}
}
