package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/mcp"
)

// TestProjectServer adds and removes servers. The file stays valid, and keeps
// what else it has, also when its last server is removed.
func TestProjectServer(t *testing.T) {
	home, dir, ctx := t.TempDir(), t.TempDir(), t.Context()
	path := filepath.Join(dir, mcp.ProjectFile)
	if removed, err := RemoveProjectServer(ctx, home, dir, "near"); removed || err != nil {
		t.Errorf("removing without a file: %v, %v", removed, err)
	}
	for _, text := range []string{"", `{"inputs": [], "mcpServers": {}}`, `{"mcpServers": {}, "inputs": []}`} {
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"near", "far"} {
			if err := SetProjectServer(ctx, home, dir, name, mcp.Server{Command: "cat"}); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []bool{true, false, true, false} {
			name := []string{"near", "near", "far", "far"}[i]
			if removed, err := RemoveProjectServer(ctx, home, dir, name); removed != want || err != nil {
				t.Errorf("%s: removing %s: %v, %v", text, name, removed, err)
			}
		}
		servers, warnings, err := ProjectServers(dir)
		if len(servers)+len(warnings) > 0 || err != nil {
			t.Errorf("servers %v, %v, %v", servers, warnings, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), `"mcpServers": {}`) || strings.Contains(text, "inputs") != strings.Contains(string(data), `"inputs": []`) {
			t.Errorf("the file is now %s, %v", data, err)
		}
	}
}
