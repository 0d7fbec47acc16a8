package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

func TestReadKeys(t *testing.T) {
	home := t.TempDir()
	if _, err := readKeys(home); err != nil {
		t.Errorf("without the file: %v", err)
	}
	for text, want := range map[string]string{
		`{"f5": "/diff", "ctrl+x": "editor"}`: "",
		"{\n  \"f5\": 5\n}":                   "keys.json:2:9: ",
		`{"f5": "undoo"}`:                     `keys.json: key "f5": unknown action "undoo"; did you mean "undo"?`,
		`{"f5": "undo", "f5": "undo"}`:        "keys.json:1:",
	} {
		if err := os.WriteFile(filepath.Join(home, "keys.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readKeys(home)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || cmdutil.ExitCode(err) != cmdutil.ExitConfig) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
