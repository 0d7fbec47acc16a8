package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"
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

// TestArchitectureIsTrue compares docs/architecture.md with the code: the files
// it names exist, and the function that a numbered step names is in the file
// that the step opens.
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

// inCopy is the first argument of this test binary when it runs a program in a copy of
// the module, in the directory that is the current one in the module.
const inCopy = "in-copy"

func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != inCopy {
		os.Exit(m.Run())
	}
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.Rel(os.Getenv("AGENT_TEST_MODULE"), dir)
	}
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = filepath.Join(os.Getenv("AGENT_TEST_COPY"), dir), os.Stdin, os.Stdout, os.Stderr
	if err = errors.Join(err, cmd.Run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestContributingPage does what docs/CONTRIBUTING.md says, in a copy of the
// module: it adds the tool, runs the page's commands and the tests of this
// package.
func TestContributingPage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds much of the module again; go test without -short does")
	}
	t.Parallel()
	page := read(t, "docs/CONTRIBUTING.md")
	code := block(t, page, "go")
	_, tool, _ := strings.Cut(code, "//go:embed")
	if n := strings.Count(tool, "\n"); n > 26 {
		t.Errorf("the tool takes %d lines after its imports, want at most 26", n)
	}
	dir := t.TempDir()
	copyModule(t, dir)
	write(t, filepath.Join(dir, "core", "tools", "count_lines.go"), code)
	write(t, filepath.Join(dir, "core", "tools", "count_lines.md"), block(t, page, "md"))
	after, added, ok := strings.Cut(block(t, page, "diff"), "\n+")
	list := read(t, "core/tools/builtin.go")
	line := strings.TrimPrefix(after, " ") + "\n"
	if !ok || strings.Count(list, line) != 1 {
		t.Fatalf("core/tools/builtin.go does not have the line %q once", line)
	}
	write(t, filepath.Join(dir, "core", "tools", "builtin.go"), strings.Replace(list, line, line+added, 1))

	env := append(os.Environ(), "AGENT_HOME="+t.TempDir())
	env = append(env, copied(t, dir, "core/tools/count_lines.go", "core/tools/count_lines.md", "core/tools/builtin.go")...)
	want := map[string]string{"tools list": "\ncount_lines ", "tools call": fmt.Sprintf("%d lines\n", strings.Count(read(t, "LICENSE"), "\n"))}
	for command := range strings.Lines(block(t, page, "sh") + "go test -short ./cmd/agent\ngo test -run=TestLanguage ./cmd/agent\n") {
		out := runCommand(t, moduleRoot(t), env, command)
		for part, text := range want {
			if strings.Contains(command, part) {
				delete(want, part)
				if !strings.Contains(out, text) {
					t.Errorf("%s prints\n%s\nwithout %q", command, out, text)
				}
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("the page runs no command for %v", want)
	}
}

// block returns the first code block of a language.
func block(t *testing.T, page, language string) string {
	t.Helper()
	_, after, found := strings.Cut(page, "```"+language+"\n")
	text, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("docs/CONTRIBUTING.md has no code block of %s", language)
	}
	return text
}

// copyModule copies the module to dir, without its git directory.
func copyModule(t *testing.T, dir string) {
	t.Helper()
	root := moduleRoot(t)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		from, to := filepath.Join(root, e.Name()), filepath.Join(dir, e.Name())
		switch {
		case e.Name() == ".git":
		case e.IsDir():
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		case e.Type().IsRegular():
			write(t, to, read(t, e.Name()))
		}
	}
}

// copied returns the environment in which the go command builds the module with files
// of a copy, and runs what it builds in the copy. To build all of the copy would take
// far longer: what is built is kept for its directory.
func copied(t *testing.T, dir string, files ...string) []string {
	t.Helper()
	root := moduleRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	for _, name := range files {
		replaced[filepath.Join(root, name)] = filepath.Join(dir, name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	write(t, file, string(overlay))
	flags := strings.TrimSpace(runCommand(t, root, os.Environ(), "go env GOFLAGS"))
	return []string{
		fmt.Sprintf(`GOFLAGS=%s '-overlay=%s' '-exec="%s" %s'`, flags, file, self, inCopy),
		"AGENT_TEST_MODULE=" + root, "AGENT_TEST_COPY=" + dir,
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runCommand runs a command line in dir and returns what it prints.
func runCommand(t *testing.T, dir string, env []string, line string) string {
	t.Helper()
	args, err := shell.Fields(line, func(string) string { return "" })
	if err != nil || len(args) == 0 {
		t.Fatalf("%q is not a command: %v", line, err)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.TrimSpace(line), err, out)
	}
	return string(out)
}
