package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestMentionOfASensitiveFile: the model gets the file, the record its path and size.
func TestMentionOfASensitiveFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{".env": "PASSWORD=hunter2\n", "a.txt": "plain\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := agent.Open(t.Context(), agent.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	none := func(string) (model.Parts, string, error) { return nil, "", nil }
	in, notes, err := expand(t.Context(), a, "compare @a.txt and @.env", nil, none)
	if err != nil || len(notes) != 2 {
		t.Fatalf("%v, %q", err, notes)
	}
	if got := in.Content.Text(); !strings.Contains(got, "hunter2") || !strings.Contains(got, "plain") {
		t.Errorf("the model gets %q", got)
	}
	if got := in.Record.Text(); strings.Contains(got, "hunter2") || !strings.Contains(got, `path=".env">`) ||
		!strings.Contains(got, "[17 bytes are not recorded") || !strings.Contains(got, "plain") {
		t.Errorf("recorded is %q", got)
	}
	if in, _, err = expand(t.Context(), a, "read @a.txt", nil, none); err != nil || in.Record != nil {
		t.Errorf("recorded is %q, %v", in.Record.Text(), err)
	}
}
