package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestArchitectureIsTrue checks the numbered steps against the code: the files
// exist, and the functions are in the files that the steps name.
func TestArchitectureIsTrue(t *testing.T) {
	doc := read(t, "docs/architecture.md")
	for _, m := range regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(doc, -1) {
		read(t, m[1])
	}
	steps := regexp.MustCompile("(?m)^\\d+\\. .*\\*\\*`([a-z_/]+\\.go)`\\*\\*, `([A-Za-z.]+)`").FindAllStringSubmatch(doc, -1)
	if len(steps) < 8 {
		t.Fatalf("found only %d numbered steps", len(steps))
	}
	for _, m := range steps {
		name := m[2][strings.LastIndex(m[2], ".")+1:]
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).MatchString(read(t, m[1])) {
			t.Errorf("docs/architecture.md: %s has no function %s", m[1], name)
		}
	}
}

// TestAddAToolInTwentyLines builds and runs the tool that CONTRIBUTING shows.
func TestAddAToolInTwentyLines(t *testing.T) {
	_, after, found := strings.Cut(read(t, "docs/CONTRIBUTING.md"), "```go\n")
	code, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("docs/CONTRIBUTING.md shows no Go code")
	}
	_, body, _ := strings.Cut(code, "//go:embed")
	if n := strings.Count(strings.TrimSpace(body), "\n"); n > 26 {
		t.Errorf("the tool takes %d lines after its imports", n)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"tools/count_lines.go": code,
		"tools/count_lines.md": "Counts the lines of a file.",
		"go.mod":               strings.Replace(read(t, "sdk/agent/example/go.mod"), "=> ../../..", "=> "+root, 1),
		"go.sum":               read(t, "sdk/agent/example/go.sum"),
		"three":                "1\n2\n3\n",
		"main.go": `package main

import (
	"context"
	"fmt"

	"example.com/agent-example/tools"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func main() {
	ctx := context.Background()
	script, _ := scripted.Parse("s", []byte("name: s\nturns:\n  - calls: [{name: count_lines, args: {file_path: three}}]\n  - when: {tool: count_lines, result: \"^3 lines$\"}\n    text: Three.\n"))
	a, err := agent.Open(ctx, agent.Options{Tools: []core.Tool{tools.CountLines()}})
	if err != nil {
		panic(err)
	}
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: script.Provider(scripted.Options{})})
	if err != nil {
		panic(err)
	}
	out, err := s.Submit(ctx, core.TextInput("count"))
	fmt.Print(out.Text, err)
}
`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "Three.<nil>" {
		t.Errorf("go run .: %v\n%s", err, out)
	}
}
