package bead

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

func tree(files map[string]string) fstest.MapFS {
	t := fstest.MapFS{}
	for name, content := range files {
		t[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return t
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{nil, ""},
		{map[string]string{"go.mod": "module x", "Makefile": "test:\n\tgo test"}, "go vet ./...; go test ./..."},
		{map[string]string{"package.json": `{"scripts": {"test": "jest", "lint": "eslint ."}}`}, "npm run lint; npm test"},
		{map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`}, ""},
		{map[string]string{"package.json": `{`}, ""},
		{map[string]string{"Cargo.toml": "", "pytest.ini": ""}, "cargo test; python3 -m pytest -q"},
		{map[string]string{"pyproject.toml": "[tool.pytest.ini_options]"}, "python3 -m pytest -q"},
		{map[string]string{"tests/test_a.py": ""}, "python3 -m pytest -q"},
		{map[string]string{"Makefile": "CHECK := x\nall:\n\ncheck: all\n"}, "make check"},
		{map[string]string{"Makefile": "test := x\nall:\n"}, ""},
	} {
		var got []string
		for _, k := range Detect(tree(c.files)) {
			got = append(got, k.Command)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%v: %q, want %q", c.files, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := func() event.TaskStart {
		return event.TaskStart{Description: "x", MaxBeads: 1, Rounds: 1, TestChange: "ask", Criteria: []event.TaskCriterion{{Name: "t", Kind: TestsPass, Command: "true"}}}
	}
	if err := Check(good()); err != nil {
		t.Fatal(err)
	}
	step := func(name string, needs ...string) event.TaskStep {
		return event.TaskStep{Name: name, Title: name, Needs: needs}
	}
	for want, change := range map[string]func(*event.TaskStart){
		"no description":      func(t *event.TaskStart) { t.Description = " \n" },
		"maxBeads is 0":       func(t *event.TaskStart) { t.MaxBeads = 0 },
		"tokenBudget is -1":   func(t *event.TaskStart) { t.TokenBudget = -1 },
		"roundsPerBead is 0":  func(t *event.TaskStart) { t.Rounds = 0 },
		`onTestChange is "x"`: func(t *event.TaskStart) { t.TestChange = "x" },
		"no command proves":   func(t *event.TaskStart) { t.Criteria[0].Kind = LintPass },
		"needs a command":     func(t *event.TaskStart) { t.Criteria[0].Command = " " },
		"unknown kind":        func(t *event.TaskStart) { t.Criteria[0].Kind = "hope" },
		"no two the same":     func(t *event.TaskStart) { t.Criteria = append(t.Criteria, t.Criteria[0]) },
		"needs a text": func(t *event.TaskStart) {
			t.Criteria = append(t.Criteria, event.TaskCriterion{Name: "f", Kind: FileContains, Path: "x"})
		},
		"two of that name":    func(t *event.TaskStart) { t.Steps = []event.TaskStep{step("a"), step("a")} },
		"which is not a step": func(t *event.TaskStart) { t.Steps = []event.TaskStep{step("a", "b")} },
		"needs itself":        func(t *event.TaskStart) { t.Steps = []event.TaskStep{step("c"), step("a", "b"), step("b", "a")} },
		"a name and a title":  func(t *event.TaskStart) { t.Steps = []event.TaskStep{{Name: "a"}} },
	} {
		task := good()
		change(&task)
		if err := Check(task); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestDone(t *testing.T) {
	for text, want := range map[string]bool{
		"DONE": true, "It works.\nDONE": true, "DONE\n\n": true, "x\r\nDONE\r\n": true,
		"": false, "DONE.": false, "done": false, " DONE": false, "All DONE": false, "DONE\nbut": false, "**DONE**": false, "NOT DONE": false,
	} {
		if Done(text) != want {
			t.Errorf("Done(%q) = %t", text, !want)
		}
	}
}

// TestFingerprint: what differs from run to run is not another error, the rest is.
func TestFingerprint(t *testing.T) {
	same := [][2]string{
		{"a_test.go:12: got 3", "a_test.go:19:4: got 3"},
		{"FAIL x 0.12s", "FAIL x 12.3s"},
		{"panic 0xc0001", "panic 0xdead"},
		{"open /tmp/a1/x: no", "open /tmp/b7/x: no"},
		{"2026-01-02T10:11:12 failed", "2026-11-22T20:01:02 failed"},
		{"a  b\n", "a b"},
		{"goroutine 7 [running]", "goroutine 91 [running]"},
	}
	for _, p := range same {
		if Fingerprint(p[:1]) != Fingerprint(p[1:]) {
			t.Errorf("%q and %q differ", p[0], p[1])
		}
	}
	for _, p := range [][2]string{{"got 3 want 4", "got 5 want 4"}, {"a failed", "b failed"}, {"--- FAIL: TestA", "--- FAIL: TestB"}} {
		if Fingerprint(p[:1]) == Fingerprint(p[1:]) {
			t.Errorf("%q and %q are the same", p[0], p[1])
		}
	}
	if Fingerprint(nil) != "" {
		t.Error("no failure has a fingerprint")
	}
}

func TestGuardTests(t *testing.T) {
	change := func(kind, path string, diff ...string) event.FileChange {
		return event.FileChange{Kind: kind, Path: path, Diff: "--- a\n+++ b\n@@ -1 +1 @@\n" + strings.Join(diff, "\n") + "\n"}
	}
	for _, c := range []struct {
		f    event.FileChange
		want string
	}{
		{change("modify", "a.go", "-x", "+y"), ""},
		{change("create", "a_test.go", "+func TestA(t *testing.T) {}"), ""},
		{change("create", "tests/test_new.py", "+def test_new(): pass"), ""},
		{change("delete", "a_test.go"), testRemoved},
		{change("delete", "a.go"), ""},
		{event.FileChange{Kind: "rename", Path: "a.txt", From: "pkg/a_test.go"}, testRemoved},
		{change("modify", "a_test.go", "-func TestA(t *testing.T) {", "-}"), testRemoved},
		{change("modify", "a_test.go", "-func TestA(t *testing.T) {", "+func TestA(tt *testing.T) {"), testChanged},
		{change("modify", "a_test.go", "+\tt.Skip()"), testSkipped},
		{change("modify", "a_test.go", "+//go:build never"), testSkipped},
		{change("modify", "a_test.go", "+\tif testing.Short() {"), testSkipped},
		{change("modify", "tests/test_a.py", "+@pytest.mark.skip"), testSkipped},
		{change("modify", "tests/test_a.py", "-def test_a():"), testRemoved},
		{change("modify", "src/a.test.ts", "-it('adds', () => {", "+it.skip('adds', () => {"), testRemoved},
		{change("modify", "src/a.test.ts", "+describe.only('x', () => {"), testSkipped},
		{change("modify", "src/test/java/AppTest.java", "+  @Disabled"), testSkipped},
		{change("modify", "src/lib.rs", "-#[test]"), testRemoved},
		{change("modify", "src/lib.rs", "+#[ignore]"), testSkipped},
		{change("modify", "src/lib.rs", "-let x = 1;", "+let x = 2;"), ""},
		{change("modify", "testdata/golden.txt", "-a", "+b"), testChanged},
		{change("create", "conftest.py", "+x = 1"), testSkipped},
		{change("create", "main_test.go", "+func TestMain(m *testing.M) {"), testSkipped},
		{change("create", "sneaky.go", "+func init() {", "+\tos.Exit(0)", "+}"), testSkipped},
		{change("modify", "cmd/main.go", "+\tos.Exit(1)"), ""},
		{event.FileChange{Kind: "modify", Path: "big_test.go"}, testChanged}, // its diff is too long
	} {
		got := ""
		if found := guardTests([]event.FileChange{c.f}); len(found) > 0 {
			got = found[0].Kind
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q\n%s", c.f.Kind, c.f.Path, got, c.want, c.f.Diff)
		}
	}
}

func TestGuardCriteria(t *testing.T) {
	base := map[string]string{
		"Makefile": "test:\n\tgo test\n", "package.json": `{"scripts": {"test": "jest"}, "dependencies": {}}`, "ci/check.sh": "true",
		"Cargo.toml": "[dependencies]\n", "pyproject.toml": "[project]\n", "go.mod": "module x\n", "a.txt": "",
	}
	for _, c := range []struct {
		command, name, content string // "" = removed
		want                   bool
	}{
		{"make test", "Makefile", "test:\n\ttrue\n", true},
		{"make test", "Makefile", "", true},
		{"go test ./...", "Makefile", "test:\n", false},
		{"npm test", "package.json", `{"scripts": {"test": "true"}, "dependencies": {}}`, true},
		{"npm test", "package.json", `{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}`, false},
		{"npm test", "package.json", `{`, true},
		{"npm test", "jest.config.js", "x", true},
		{"bash -e ci/check.sh fast", "ci/check.sh", "exit 0", true},
		{"FOO=1 ./ci/check.sh", "ci/check.sh", "exit 0", true},
		{"true && sh ./ci/check.sh", "ci/check.sh", "exit 0", true},
		{"grep x a.txt", "a.txt", "x", false},
		{"grep -c . a.txt; test -e a.txt", "a.txt", "x", false},
		{". ./a.txt", "a.txt", "x", true},
		{"make -f a.txt", "a.txt", "x", true},
		{"cargo test", "Cargo.toml", "[dependencies]\na = 1\n", false},
		{"cargo test", "Cargo.toml", "[lib]\ntest = false\n", true},
		{"cargo test", ".cargo/config.toml", "x", true},
		{"python3 -m pytest -q", "pyproject.toml", "[project]\nname = 1\n", false},
		{"python3 -m pytest -q", "pyproject.toml", "[project]\n[tool.pytest.ini_options]\naddopts = 1\n", true},
		{"pytest", "pytest.ini", "[pytest]", true},
		{"go test ./...", "go.mod", "module x\n\nrequire y v1\n", false},
		{"go test ./...", "pkg/go.mod", "module x\n", true},
		{"go test ./...", "go.work", "go 1.26\n", true},
	} {
		criteria := []event.TaskCriterion{{Name: "c", Kind: TestsPass, Command: c.command}}
		before := Seal(tree(base), criteria, nil)
		files := map[string]string{}
		for k, v := range base {
			files[k] = v
		}
		kind := "modify"
		if _, ok := files[c.name]; !ok {
			kind = "create"
		}
		if files[c.name] = c.content; c.content == "" {
			delete(files, c.name)
		}
		found := guardCriteria(before, Seal(tree(files), criteria, []string{c.name}), []event.FileChange{{Kind: kind, Path: c.name}})
		if (len(found) == 1) != c.want || len(found) > 1 {
			t.Errorf("%s, %s %q: %v, want %t", c.command, c.name, c.content, found, c.want)
		}
	}
}

// TestPromptFits: what is repeated is limited.
func TestPromptFits(t *testing.T) {
	var long []string
	for i := range 9 {
		long = append(long, fmt.Sprint(i)+strings.Repeat("x", 9000)+"```")
	}
	c := Context{Task: event.TaskStart{Description: "d", MaxBeads: 3, Rounds: 10}, Bead: 2, Errors: long, Finishing: true, Graph: "GRAPH"}
	text := c.Prompt()
	if len(text) > maxErrors*(maxError+200)+3000 || !strings.Contains(text, "and 4 more") || strings.Contains(text, "x```\n```") {
		t.Errorf("%d bytes:\n%.3000s", len(text), text)
	}
	if strings.Index(text, "GRAPH") < strings.Index(text, "Error 5") || !strings.Contains(text, "last bead that the budget allows") {
		t.Errorf("the order is wrong:\n%.3000s", text)
	}
}

func TestEstimate(t *testing.T) {
	req := &model.Request{System: strings.Repeat("four", 100), Tools: make([]model.ToolDef, 1), Messages: []model.Message{{Parts: model.TextParts(strings.Repeat("four", 50))}}}
	if n := Estimate(req); n < 2150 || n > 2160 {
		t.Errorf("%d tokens", n)
	}
}
