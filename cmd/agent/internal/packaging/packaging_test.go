package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// top is the top directory of the repository.
const top = "../../../.."

// TestWrite makes what the packages hold.
func TestWrite(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	dir := t.TempDir()
	if err := write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"man/agent.1":             {`.TH "AGENT" "1"`, "--permission-mode"},
		"man/agent-exec.1":        {"agent-exec", "--output-format", ".SH EXAMPLE"},
		"man/agent-mcp-add.1":     {"agent-mcp(1)"},
		"completions/agent.bash":  {"__start_agent"},
		"completions/_agent":      {"#compdef agent"},
		"completions/agent.fish":  {"complete -c agent"},
		"completions/agent.ps1":   {"Register-ArgumentCompleter"},
		"THIRD_PARTY_LICENSES.md": {"\n## Go go1.", "\n## github.com/spf13/cobra v", "Apache License", "\n## github.com/danieljoos/wincred v"},
	} {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, text := range want {
			if !bytes.Contains(data, []byte(text)) {
				t.Errorf("%s does not have %q", name, text)
			}
		}
	}
	checkReleaseFiles(t, dir)
}

// checkReleaseFiles looks for the files that the release configuration names.
func checkReleaseFiles(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sources := regexp.MustCompile(`src: ([^\s]+)`).FindAllStringSubmatch(string(text), -1)
	for _, m := range sources {
		path := filepath.Join(top, m[1])
		if made, ok := strings.CutPrefix(m[1], ".release/"); ok {
			path = filepath.Join(dir, made)
		}
		if found, err := filepath.Glob(path); err != nil || len(found) == 0 {
			t.Errorf(".goreleaser.yaml names %s, which does not exist (%v)", m[1], err)
		}
	}
	if len(sources) < 8 { // else they are not recognised
		t.Errorf("found %d sources", len(sources))
	}
}

// TestNoLicence refuses a library whose licence is not known.
func TestNoLicence(t *testing.T) {
	dir := t.TempDir()
	l := library{Path: "example.com/x", Version: "v1.0.0", Dir: dir}
	if err := l.writeTexts(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "example.com/x v1.0.0: no licence file") {
		t.Errorf("error %v", err)
	}
	for name, counts := range map[string]bool{"LICENSE": true, "COPYING.md": true, "notice.txt": true, "license.go": false, "licensing": false} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("the text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		_ = l.writeTexts(&b) // an error where it finds nothing
		if got := strings.Contains(b.String(), "the text of "+name); got != counts {
			t.Errorf("%s counts as a licence: %v", name, got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkflows reads the files of GitHub: workflows and the action have the least
// permissions, and no words of a pull request or a secret are put into a script.
func TestWorkflows(t *testing.T) {
	var files []string
	for _, pattern := range []string{".github/workflows/*.yml", ".github/ISSUE_TEMPLATE/*.yml", "docs/ci/*/action.yml", ".goreleaser.yaml"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: nothing found (%v)", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var node map[string]any
		if err := yaml.Unmarshal(data, &node); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, script := range scripts(node) {
			if strings.Contains(script, "${{") {
				t.Errorf("%s: pass this through env instead of the script: %s", file, script)
			}
		}
		if strings.Contains(filepath.ToSlash(file), "/workflows/") {
			if p, _ := node["permissions"].(map[string]any); len(p) != 1 || p["contents"] != "read" {
				t.Errorf("%s: permissions %v, want contents: read, and more only for a job", file, node["permissions"])
			}
		}
	}
}

// scripts returns the values of all members "run".
func scripts(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if text, ok := member.(string); ok && name == "run" {
				all = append(all, text)
			}
			all = append(all, scripts(member)...)
		}
	case []any:
		for _, member := range v {
			all = append(all, scripts(member)...)
		}
	}
	slices.Sort(all)
	return all
}
