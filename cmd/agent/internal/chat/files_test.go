package chat

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// workspace returns an agent in a directory with files.
func workspace(t *testing.T, files map[string]string) (*agent.Agent, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := agent.Open(t.Context(), agent.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a, dir
}

func TestMentions(t *testing.T) {
	a, _ := workspace(t, map[string]string{"a.txt": "1\n2\n3\n4\n", "my notes.md": "note\n", "sub/b.go": "package b\n", "odd:1": "odd\n"})
	none := func(string) (model.Parts, string, error) { return nil, "", nil }
	for _, tt := range []struct{ text, want, note string }{
		{"@a.txt:2-3", "<file path=\"a.txt\" lines=\"2-3\">\n2\n3\n</file>", "@a.txt: 2 lines"},
		{"see @a.txt#L4.", "<file path=\"a.txt\" lines=\"4-4\">\n4\n</file>", "@a.txt: 1 line"},
		{"@a.txt:3-99", "lines=\"3-4\"", "@a.txt: 2 lines"},
		{`@"my notes.md" please`, "<file path=\"my notes.md\">\nnote\n</file>", "@my notes.md: 1 line"},
		{`@"my notes.md":1`, "lines=\"1-1\"", "@my notes.md: 1 line"},
		{"@sub/", "<directory path=\"sub/\">\nb.go\n</directory>", "@sub/: 1 name"},
		{"@odd:1", "<file path=\"odd:1\">\nodd\n</file>", "@odd:1: 1 line"},
		{"@a.txt:0", "", "@a.txt:0: no such file; left as text"},
		{"@a.txt:3-2", "", "@a.txt:3-2: no such file; left as text"},
		{"@nope", "", "@nope: no such file; left as text"},
		{"@Override\nvoid f();", "", ""},
		{"look at\n@a.text", "", "@a.text: no such file; left as text"},
		{"mail me@a.txt", "", ""},
	} {
		in, notes, err := expand(t.Context(), a, tt.text, nil, none)
		if err != nil || strings.Join(notes, "|") != tt.note {
			t.Errorf("%s: notes %q, %v; want %q", tt.text, notes, err, tt.note)
		}
		if got := strings.TrimPrefix(in.Content.Text(), tt.text); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
	if _, _, err := expand(t.Context(), a, "@a.txt:5-6", nil, none); err == nil || !strings.Contains(err.Error(), "it has only 4 lines") {
		t.Errorf("lines after the end: %v", err)
	}
}

// TestFileList completes files of a directory, and of a repository, without those
// that git ignores.
func TestFileList(t *testing.T) {
	files := map[string]string{"main.go": "", "internal/tui/markdown.go": "", "node_modules/x/main.go": "", ".hidden/main.go": "", "my notes.md": "", ".gitignore": "*.log\n", "a.log": ""}
	a, dir := workspace(t, files)
	list := &fileList{env: a.Env()}
	check := func(query, want string) {
		t.Helper()
		if got := strings.Join(list.complete(t.Context(), query), ", "); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	check("", "a.log, internal/, main.go, my notes.md")
	check("main", "main.go")
	check("tuimd", "internal/tui/markdown.go")
	check("notes", "my notes.md")
	check("tui/", "internal/tui/, internal/tui/markdown.go")
	check(dir+"/ma", dir+"/main.go")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing")
	}
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list = &fileList{env: a.Env()}
	check("", ".gitignore, .hidden/, internal/, main.go, my notes.md, node_modules/")
	check("a.log", "")
}
