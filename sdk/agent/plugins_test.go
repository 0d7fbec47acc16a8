package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestPluginsAreTools opens an agent with a valid plugin, one whose
// plugin.json is invalid, and one whose name a toolset of the host has.
func TestPluginsAreTools(t *testing.T) {
	home := t.TempDir()
	broken := filepath.Join(home, "broken")
	if err := os.Mkdir(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	links, err := json.Marshal(map[string]any{"version": 1, "links": map[string]string{"broken": broken}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "plugin-links.json"), links, 0o600); err != nil {
		t.Fatal(err)
	}
	echo := sdk.Tool("echo", "Say it again.", func(*sdk.Context, struct{}) (string, error) { return "", nil })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Open(t.Context(), agent.Options{
		Dir: t.TempDir(), Toolsets: []core.Toolset{named("taken")},
		Plugins: &plugins.Options{
			Home: home, BundledCommand: []string{self, "internal-plugin"},
			Bundled: []sdk.Plugin{{Name: "voice", Version: "1", Extensions: []sdk.Extension{echo}}, {Name: "taken", Version: "1", Extensions: []sdk.Extension{echo}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	table, err := a.Tools().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := table.Lookup("echo"); !ok || e.Source != "voice" {
		t.Errorf("the plugin's tool is %+v, %v", e, ok)
	}
	var all []string
	for _, err := range a.PluginErrors() {
		all = append(all, err.Error())
	}
	if text := strings.Join(all, "\n"); len(all) != 2 || !strings.Contains(text, "plugin broken: ") || !strings.Contains(text, `plugin taken: registry: toolset "taken" already exists`) {
		t.Errorf("left out are:\n%s", text)
	}
}

// named is a toolset without tools.
type named string

func (n named) Name() string                             { return string(n) }
func (named) Changed() <-chan struct{}                   { return nil }
func (named) Close() error                               { return nil }
func (named) Tools(context.Context) ([]core.Tool, error) { return nil, nil }
