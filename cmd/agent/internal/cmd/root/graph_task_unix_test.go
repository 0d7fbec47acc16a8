//go:build unix

package root

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// graphFiles is a Go module: web uses store, ext uses old.go in it, and cli is alone.
var graphFiles = map[string]string{
	"go.mod":          "module shop\n\ngo 1.26\n",
	"store/store.go":  "package store\n\n// Get returns a value.\nfunc Get(k string) string { return k }\n",
	"store/old.go":    "package store\n\nfunc Old() int { return 1 }\n",
	"web/web.go":      "package web\n\nimport \"shop/store\"\n\n// Page renders a page.\nfunc Page() string { return store.Get(\"page\") }\n",
	"web/web_test.go": "package web\n\nimport \"testing\"\n\nfunc TestPage(t *testing.T) { Page() }\n",
	"ext/ext.go":      "package ext\n\nimport \"shop/store\"\n\nfunc Ext() int { return store.Old() }\n",
	"ext/ext_test.go": "package ext\n\nimport \"testing\"\n\nfunc TestExt(t *testing.T) { Ext() }\n",
	"cli/cli.go":      "package cli\n\nfunc Main() {}\n",
	"cli/cli_test.go": "package cli\n\nimport \"testing\"\n\nfunc TestMain2(t *testing.T) { Main() }\n",
	"docs.md":         "Docs\n",
	"bin/go":          "#!/bin/sh\necho \"go $*\" >>\"$0.log\"\n",
	".gitignore":      "bin\n",
	"../plan.json":    graphPlan,
}

const graphPlan = `{"description": "Work on the shop", "criteria": [{"name": "test", "kind": "tests-pass", "command": "go test ./..."}], "steps": [
	{"name": "store", "title": "Cache Get", "files": ["store/*.go"]},
	{"name": "web", "title": "Make Page nice", "files": ["web"]},
	{"name": "cli", "title": "Add Fresh to the command line", "files": ["cli/*.go"]},
	{"name": "docs", "title": "Describe it", "files": ["docs.md"]},
	{"name": "drop", "title": "Drop Old", "needs": ["store", "web", "cli", "docs"], "files": ["store/old.go"]}]}`

// shopModel does each step of the plan with a command; the bead of cli then asks the
// graph.
type shopModel struct {
	mu      sync.Mutex
	prompts map[string]string // of each step
	impact  string            // what get_impact answered
}

func (m *shopModel) answer(r *modeltest.Request) modeltest.Turn {
	body := string(r.Body)
	found := planStep.FindStringSubmatch(body)
	if found == nil {
		return modeltest.Turn{Text: []string{"There is no step."}}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	step, results := found[1], strings.Split(body, `"role":"tool"`)
	if len(results) == 1 {
		m.prompts[step] = strings.ReplaceAll(body[strings.LastIndex(body, "# Task"):], `\n`, "\n")
	}
	call := func(tool, args string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{ID: fmt.Sprintf("%s_%d", step, len(results)), Name: tool, Args: []string{args}}}}
	}
	switch {
	case len(results) == 1:
		args, _ := json.Marshal(map[string]string{"command": map[string]string{ // a string has JSON
			"store": `printf '\nfunc cached(k string) string { return Get(k) }\n' >>store/store.go`,
			"web":   `printf '\nfunc Nice() string { return Page() }\n' >>web/web.go`,
			"cli":   `printf '\nfunc Fresh() { Main() }\n' >>cli/cli.go; mkdir -p cli/sub; printf 'package sub\n\nimport "shop/cli"\n\nfunc Sub() { cli.Fresh() }\n' >cli/sub/sub.go`,
			"docs":  `echo more >>docs.md`,
			"drop":  `rm store/old.go`,
		}[step]})
		return call("shell", string(args))
	case step == "cli" && len(results) == 2:
		return call("get_impact", `{"path": "Fresh"}`)
	case step == "cli":
		m.impact = results[2]
	}
	return modeltest.Turn{Text: []string{"The step is done."}}
}

// TestTaskGraph: the real graph decides which steps of a plan are worked on side by side,
// what their beads are told, and which tests verify them. In a worktree its tools know
// what the bead changed there.
func TestTaskGraph(t *testing.T) {
	w := newWorld(t, "[]")
	for name, text := range graphFiles {
		path := filepath.Join(w.workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Dir(w.workspace)
	t.Setenv("PATH", filepath.Join(w.workspace, "bin")+":"+os.Getenv("PATH"))
	before := w.repository()
	m := &shopModel{prompts: map[string]string{}}
	chat := modeltest.NewChatFunc(m.answer)
	chat.Models = []string{"fake-1"}
	url, stop, err := chat.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := writeSettings(w.home, url); err != nil {
		t.Fatal(err)
	}
	a := w.task("run", "--permission-mode", "bypass", "--worktrees", "4", filepath.Join(root, "plan.json"))
	<-a.done
	if code := a.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d: %s", code, a.read(a.stderr))
	}
	home := filepath.Join(w.home, ".agent")
	list, err := agent.ListTasks(t.Context(), home)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d tasks, %v", len(list), err)
	}
	var order []string
	for _, b := range list[0].Beads {
		order = append(order, fmt.Sprintf("%s %s %t", b.Step, b.State, b.Worktree != ""))
	}
	if want := []string{"store committed true", "cli committed true", "docs committed true", "web committed false", "drop committed false"}; !slices.Equal(order, want) {
		t.Errorf("beads %q, want %q", order, want)
	}
	m.check(t)
	checkMerges(t, home, list[0])
	log, err := os.ReadFile(filepath.Join(w.workspace, "bin", "go.log"))
	if err != nil {
		t.Fatal(err)
	}
	want := "go test -run ^(TestPage)$ ./web\n" + // store is merged
		"go test -run ^(TestMain2|TestPage)$ ./cli ./web\n" +
		"go test -run ^(TestMain2|TestPage)$ ./cli ./web\n" +
		"go test -run ^(TestMain2|TestPage)$ ./cli ./web\n" +
		"go test -run ^(TestExt|TestMain2|TestPage)$ ./cli ./ext ./web\ngo test ./...\n"
	if string(log) != want {
		t.Errorf("these ran:\n%swant:\n%s", log, want)
	}
	if w.repository() != before {
		t.Error("the user's repository has changed")
	}
}

// check looks at what the beads were told.
func (m *shopModel) check(t *testing.T) {
	t.Helper()
	for step, want := range map[string][]string{
		"store": {"What changing store/old.go, store/store.go may break", "web/web.go", "TestPage", "leave these files to them", "cli/*.go (step", "confidence: high"},
		"web":   {"What it uses", "store/store.go:4 func Get(k string) string — Get returns a value.", "Make Page nice"},
		"docs":  {"The whole graph:", "8 files, 5 functions and methods, 3 tests"},
		"drop":  {"What changing store/old.go, web/web.go may break", "ext/ext.go", "TestExt"},
	} {
		for _, text := range want {
			if !strings.Contains(m.prompts[step], text) {
				t.Errorf("the bead of %s is not told %q:\n%s", step, text, m.prompts[step])
			}
		}
	}
	if !strings.Contains(m.impact, "cli/sub/sub.go") {
		t.Errorf("get_impact in a worktree: %s", m.impact)
	}
}

// checkMerges: beads are merged in their order, each only after the one before it was
// verified.
func checkMerges(t *testing.T, home string, s bead.Status) {
	t.Helper()
	var seen []string
	for e, err := range store.Read(t.Context(), filepath.Join(agent.TasksDir(home), s.Task.Task), "beads", 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.TaskState:
			if b.Bead > 0 && b.Before != "" {
				seen = append(seen, fmt.Sprintf("%d merged", b.Bead))
			}
		case event.BeadEnd:
			seen = append(seen, fmt.Sprintf("%d %s", b.Bead, b.State))
		}
	}
	want := "1 merged, 1 committed, 2 merged, 2 committed, 3 merged, 3 committed, 4 committed, 5 committed"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
