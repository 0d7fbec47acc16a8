package bead

import (
	"encoding/json"
	"io/fs"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/lazy"
)

var testTarget = lazy.Regexp(`(?m)^(test|check)[ \t]*:([^=]|$)`)

// Detect returns the criteria that a repository suggests: the tests and linters of Go,
// npm, Cargo and pytest, or else a make target test or check.
func Detect(tree fs.FS) (found []event.TaskCriterion) {
	add := func(name, kind, command string) {
		found = append(found, event.TaskCriterion{Name: name, Kind: kind, Command: command})
	}
	read := func(name string) string {
		data, _ := fs.ReadFile(tree, name) // empty without the file
		return string(data)
	}
	exists := func(pattern string) bool {
		names, _ := fs.Glob(tree, pattern) // the patterns are valid
		return len(names) > 0
	}
	if exists("go.mod") {
		add("go-vet", LintPass, "go vet ./...")
		add("go-test", TestsPass, "go test ./...")
	}
	var pkg struct{ Scripts map[string]string }
	if json.Unmarshal([]byte(read("package.json")), &pkg) == nil {
		if pkg.Scripts["lint"] != "" {
			add("npm-lint", LintPass, "npm run lint")
		}
		if test := pkg.Scripts["test"]; test != "" && !strings.Contains(test, "no test specified") {
			add("npm-test", TestsPass, "npm test")
		}
	}
	if exists("Cargo.toml") {
		add("cargo-test", TestsPass, "cargo test")
	}
	if exists("pytest.ini") || exists("conftest.py") || exists("test_*.py") || exists("tests/test_*.py") || exists("tests/conftest.py") ||
		strings.Contains(read("pyproject.toml"), "[tool.pytest") || strings.Contains(read("setup.cfg"), "[tool:pytest]") {
		add("pytest", TestsPass, "python3 -m pytest -q")
	}
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if target := testTarget().FindStringSubmatch(read(name)); len(found) == 0 && target != nil {
			add("make-"+target[1], TestsPass, "make "+target[1])
		}
	}
	return found
}
