package plugins

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSourceStamp(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".gitignore", "/weather\n*.log\n")
	write("plugin.py", "1")
	for _, name := range []string{"weather", "a.log", ".git/index", "node_modules/x/index.js", "sub/__pycache__/x.pyc"} {
		before := SourceStamp(dir, nil)
		if write(name, "new"); SourceStamp(dir, nil) != before {
			t.Errorf("%s counts as a source", name)
		}
	}
	for _, name := range []string{"plugin.py", "lib/more.py", "lib/more.py"} {
		before := SourceStamp(dir, nil)
		if write(name, before); SourceStamp(dir, nil) == before {
			t.Errorf("a change of %s was missed", name)
		}
	}
	before := SourceStamp(dir, nil)
	if err := os.RemoveAll(filepath.Join(dir, "lib")); err != nil {
		t.Fatal(err)
	}
	if SourceStamp(dir, nil) == before {
		t.Error("a removed file was missed")
	}
}
