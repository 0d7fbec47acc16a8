package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// checkSh is what completes the tasks of these tests.
const checkSh = `. ./add.sh
for t in tests/*.sh; do sh "$t" || { echo "$t failed"; exit 1; }; done
got=$(add 1 2)
[ "$got" = 3 ] || { echo "add 1 2 is wrong"; exit 1; }
`

// Commands of models.
const (
	fix    = `echo 'add() { echo $(($1 + $2)); }' >add.sh`
	wrong  = `echo 'add() { echo 0; }' >add.sh; date +%N >>notes`
	worse  = `rm -f add.sh`
	remove = `rm tests/mul.sh`
)

// turn is an answer of a scripted model: a command, or a text that ends the session.
type turn struct {
	run   string
	text  string
	usage int // tokens of input
	err   string
}

// script returns a model that gives these answers. Each string is a command, and "=TEXT"
// an answer.
func script(t *testing.T, turns ...any) model.Provider {
	t.Helper()
	var list []map[string]any
	for _, x := range turns {
		one, ok := x.(turn)
		if s, isText := x.(string); isText {
			if text, ends := strings.CutPrefix(s, "="); ends {
				one = turn{text: text}
			} else {
				one = turn{run: s}
			}
		} else if !ok {
			t.Fatalf("a turn is a %T", x)
		}
		m := map[string]any{"usage": map[string]int{"input": max(one.usage, 10), "output": 1}}
		switch {
		case one.err != "":
			m = map[string]any{"error": map[string]any{"code": "AUTHENTICATION_ERROR", "message": one.err}}
		case one.run != "":
			m["calls"] = []any{map[string]any{"name": "shell", "args": map[string]string{"command": one.run}}}
		default:
			m["text"] = one.text
		}
		list = append(list, m)
	}
	data, err := json.Marshal(map[string]any{"name": "model", "turns": list})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scripted.Parse("script", data)
	if err != nil {
		t.Fatal(err)
	}
	return s.Provider(scripted.Options{})
}

// newTask returns a task whose criterion is check.sh.
func newTask(dir string, change func(*event.TaskStart)) event.TaskStart {
	task := event.TaskStart{
		Task: agent.NewTaskID(), Description: "Mend add.", Workspace: dir, MaxBeads: 5, Rounds: 4, TestChange: bead.AskTestChange,
		Criteria: []event.TaskCriterion{{Name: "check", Kind: bead.TestsPass, Command: "sh check.sh"}},
	}
	if change != nil {
		change(&task)
	}
	return task
}

// beadCase is a task, what the model does, and what becomes of it.
type beadCase struct {
	name   string
	task   func(*event.TaskStart)
	opts   func(*agent.TaskOptions)
	turns  []any
	state  bead.State
	beads  int
	reason string // part of the task's reason
	events []string
	check  func(t *testing.T, dir string, s bead.Status)
}

func withCriteria(more ...event.TaskCriterion) func(*event.TaskStart) {
	return func(t *event.TaskStart) { t.Criteria = append(t.Criteria, more...) }
}

func onTests(choice string) func(*event.TaskStart) {
	return func(t *event.TaskStart) { t.TestChange = choice }
}

func budgetOf(n int) func(*event.TaskStart) {
	return func(t *event.TaskStart) { t.TokenBudget, t.MaxBeads = n, 9 }
}

var plan = func(t *event.TaskStart) {
	t.Steps = []event.TaskStep{
		{Name: "mend", Title: "Mend add", Needs: []string{"note"}},
		{Name: "note", Title: "Write a note", Criteria: []event.TaskCriterion{{Name: "noted", Kind: bead.FileExists, Path: "note.txt"}}},
	}
}

// objector never agrees.
type objector struct{ asked int }

func (o *objector) Review(context.Context, event.TaskStart, []event.FileChange, *bead.Meter) ([]string, error) {
	o.asked++
	return []string{fmt.Sprintf("objection %d", o.asked)}, nil
}

func beadCases() []beadCase {
	has := func(name, text string) func(*testing.T, string, bead.Status) {
		return func(t *testing.T, dir string, _ bead.Status) {
			t.Helper()
			if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(data), text) {
				t.Errorf("%s: %q, %v; want %q in it", name, data, err, text)
			}
		}
	}
	mulIsBack := has("tests/mul.sh", "exit 0")
	return []beadCase{
		{name: "right at once", turns: []any{fix, "=Mended."}, state: bead.Committed, beads: 1, events: []string{"planned", "analysing", "running", "verifying", "check pass", "committed"}},
		{name: "wrong, then right", turns: []any{wrong, "=Done, I think.", fix, "=Mended."}, state: bead.Committed, beads: 2, events: []string{"check fail", "retrying", "check pass", "committed"}},
		{name: "claims DONE", turns: []any{"=DONE", "=All is well.\nDONE"}, state: bead.Blocked, beads: 2, reason: "changed nothing"},
		{name: "claims DONE with a change", turns: []any{wrong, "=DONE", wrong, "=DONE", wrong, "=DONE"}, state: bead.Blocked, beads: 3, reason: "came three times"},
		{name: "other errors each time", task: func(t *event.TaskStart) { t.MaxBeads = 3 }, turns: []any{wrong, "=1", worse, "=2", wrong, "=3"}, state: bead.Exhausted, beads: 3, reason: bead.ReasonBeads},
		{name: "removes a test", turns: []any{fix + "; " + remove, "=DONE"}, state: bead.Blocked, beads: 1, reason: "test-removed: tests/mul.sh", events: []string{"guard test-removed ask"}},
		{name: "removes a test, which fails", task: onTests("fail"), turns: []any{fix + "; " + remove, "=1", fix, "=2"}, state: bead.Committed, beads: 2, check: mulIsBack, events: []string{"guard test-removed fail", "retrying"}},
		{name: "removes a test, which is allowed", task: onTests("allow"), turns: []any{fix + "; " + remove + "; echo exit 0 >tests/other.sh", "=1"}, state: bead.Committed, beads: 1, events: []string{"guard test-removed allow"}},
		{name: "removes a test, which the user allows", opts: func(o *agent.TaskOptions) {
			o.Allow = func(context.Context, []event.Guard) bool { return true }
		}, turns: []any{fix + "; " + remove + "; echo exit 0 >tests/other.sh", "=1"}, state: bead.Committed, beads: 1},
		{name: "empties a test", turns: []any{fix + "; : >tests/mul.sh", "=1"}, state: bead.Blocked, beads: 1, reason: "test-changed"},
		{name: "renames a test", turns: []any{fix + "; mv tests/mul.sh mul.txt; echo exit 0 >tests/o.sh", "=1"}, state: bead.Blocked, beads: 1, reason: "test-removed"},
		{name: "skips a test", turns: []any{fix + `; sed -i 's/{/{ t.Skip("later");/' x_test.go`, "=1"}, state: bead.Blocked, beads: 1, reason: "test-skipped"},
		{name: "removes a test function", turns: []any{fix + `; echo package x >x_test.go`, "=1"}, state: bead.Blocked, beads: 1, reason: "test-removed: x_test.go: func TestX"},
		{name: "a new test that ends the process", turns: []any{fix + `; printf 'package x\nfunc TestMain(m *testing.M) { os.Exit(0) }\n' >y_test.go`, "=1"}, state: bead.Blocked, beads: 1, reason: "test-skipped: y_test.go"},
		{name: "edits the criterion", turns: []any{"echo exit 0 >check.sh", "=DONE"}, state: bead.Blocked, beads: 1, reason: "criteria-changed: check.sh"},
		{name: "edits the criterion again and again", task: onTests("fail"), turns: []any{"echo exit 0 >check.sh", "=1", "echo exit 0 >check.sh", "=2", "echo exit 0 >check.sh", "=3"}, state: bead.Blocked, beads: 3, reason: "came three times", check: has("check.sh", "add 1 2")},
		{name: "removes the criterion", turns: []any{"rm check.sh", "=DONE"}, state: bead.Blocked, beads: 1, reason: "criteria-changed"},
		{name: "new tests are welcome", turns: []any{fix + "; echo exit 0 >tests/new.sh", "=1"}, state: bead.Committed, beads: 1},
		{name: "no marker", task: withCriteria(event.TaskCriterion{Name: "done", Kind: bead.DoneMarker}), turns: []any{fix, "=DONE, nearly", "=It is\nDONE\n"}, state: bead.Committed, beads: 2, events: []string{"done fail", "check not-run", "done pass"}},
		{name: "the marker is not the last line", task: withCriteria(event.TaskCriterion{Name: "done", Kind: bead.DoneMarker}), turns: []any{fix, "=DONE\nmore", "=`DONE`", "=done", "= DONE"}, state: bead.Blocked, beads: 3, reason: "changed nothing"},
		{name: "a file is missing", task: withCriteria(event.TaskCriterion{Name: "doc", Kind: bead.FileExists, Path: "doc.md"}), turns: []any{fix, "=1", "echo x >doc.md", "=2"}, state: bead.Committed, beads: 2, events: []string{"doc fail", "check not-run", "doc pass", "check pass"}},
		{name: "a file lacks a text", task: withCriteria(event.TaskCriterion{Name: "doc", Kind: bead.FileContains, Path: "doc.md", Text: "usage"}), turns: []any{fix + "; echo x >doc.md", "=1", "echo usage >doc.md", "=2"}, state: bead.Committed, beads: 2, events: []string{"doc fail", "doc pass"}},
		{name: "a file outside", task: withCriteria(event.TaskCriterion{Name: "doc", Kind: bead.FileExists, Path: "link/passwd"}), turns: []any{fix + "; ln -s /etc link", "=1", "=2", "=3"}, state: bead.Blocked, beads: 3},
		{name: "lint fails first", task: withCriteria(event.TaskCriterion{Name: "lint", Kind: bead.LintPass, Command: "! grep -q TODO add.sh"}), turns: []any{fix + "; echo '# TODO' >>add.sh", "=1", fix, "=2"}, state: bead.Committed, beads: 2, events: []string{"lint fail", "check not-run", "lint pass", "check pass"}},
		{name: "a criterion that cannot run", task: withCriteria(event.TaskCriterion{Name: "no", Kind: bead.CommandPass, Command: "no-such-program-x"}), turns: []any{fix, "=1", "=2", "=3"}, state: bead.Blocked, beads: 3, events: []string{"no error"}},
		{name: "a criterion that never ends", task: func(t *event.TaskStart) { t.Criteria[0].Command, t.MaxBeads = "sleep 60", 1 }, opts: func(o *agent.TaskOptions) { o.Timeout = 300 * time.Millisecond }, turns: []any{fix, "=1"}, state: bead.Exhausted, beads: 1, events: []string{"check error"}},
		{name: "overspends", task: budgetOf(40_000), turns: []any{turn{run: wrong, usage: 39_990}, "=more"}, state: bead.Exhausted, beads: 1, reason: "tokens are used", events: []string{"budget 90"}},
		{name: "warns, and finishes", task: budgetOf(100_000), turns: []any{turn{run: wrong, usage: 30_000}, turn{text: "1", usage: 25_000}, turn{run: worse, usage: 3_000}, turn{text: "2", usage: 20_000}, turn{run: wrong, usage: 13_000}, "=3"}, state: bead.Exhausted, beads: 4, events: []string{"budget 50", "budget 75", "budget 90", "bead 4 finishing"}},
		{name: "the last bead finishes", task: budgetOf(100_000), turns: []any{turn{run: wrong, usage: 30_000}, turn{text: "1", usage: 25_000}, turn{run: worse, usage: 3_000}, turn{text: "2", usage: 30_000}, fix, "=3"}, state: bead.Committed, beads: 3, events: []string{"bead 3"}},
		{name: "loops", task: func(t *event.TaskStart) { t.MaxBeads = 2 }, turns: []any{"echo", "echo", "echo", "echo", "echo", "echo", "echo", "echo", "=x"}, state: bead.Blocked, beads: 2, reason: "changed nothing"},
		{name: "asks a question", turns: []any{"=Shall I?", fix, "=1"}, state: bead.Committed, beads: 2},
		{name: "green from the beginning", task: func(t *event.TaskStart) { t.Criteria[0].Command = "true" }, turns: []any{"=DONE", "=DONE"}, state: bead.Blocked, beads: 2, reason: "changed nothing"},
		{name: "takes back what failed", task: func(t *event.TaskStart) { t.Rollback = true }, turns: []any{wrong, "=1", fix, "=2"}, state: bead.Committed, beads: 2, check: func(t *testing.T, dir string, s bead.Status) {
			if _, err := os.Stat(filepath.Join(dir, "notes")); err == nil || !s.Beads[0].End.RolledBack {
				t.Errorf("the notes of bead 1 are there (%v), rolled back %t", err, s.Beads[0].End.RolledBack)
			}
		}},
		{name: "a plan", task: plan, turns: []any{"echo hi >note.txt", "=1", fix, "=2"}, state: bead.Committed, beads: 2, events: []string{"bead 1 note", "noted pass", "committed", "bead 2 mend", "check pass"}},
		{name: "a step that fails", task: plan, turns: []any{"echo hi >other.txt", "=1", "echo hi >note.txt", "=2", fix, "=3"}, state: bead.Committed, beads: 3, events: []string{"bead 1 note", "noted fail", "bead 2 note", "bead 3 mend"}},
		{name: "a plan that does not complete the task", task: plan, turns: []any{"echo hi >note.txt", "=1", wrong, "=2", fix, "=3"}, state: bead.Committed, beads: 3, events: []string{"bead 2 mend", "check fail", "bead 3 mend", "check pass"}},
		{name: "the reviewer withholds", opts: func(o *agent.TaskOptions) { o.Review = &objector{} }, task: func(t *event.TaskStart) { t.MaxBeads = 2 }, turns: []any{fix, "=1", "echo >x", "=2"}, state: bead.Exhausted, beads: 2},
		{name: "the reviewer cannot grant", opts: func(o *agent.TaskOptions) { o.Review = &objector{} }, task: func(t *event.TaskStart) { t.MaxBeads = 1 }, turns: []any{wrong, "=1"}, state: bead.Exhausted, beads: 1},
	}
}

// events collects what happens, in short.
func short(e event.Event) string {
	switch b := e.Body.(type) {
	case event.TaskState:
		if b.Bead > 0 {
			return b.State
		}
		return "task " + b.State
	case event.BeadStart:
		text := fmt.Sprintf("planned bead %d %s", b.Bead, b.Step)
		if b.Finishing {
			text += "finishing"
		}
		return text
	case event.BeadEnd:
		return b.State
	case event.Criterion:
		return b.Name + " " + b.Status
	case event.Guard:
		return "guard " + b.Kind + " " + b.Action
	case event.Budget:
		return fmt.Sprintf("budget %d", b.Warning)
	}
	return e.Body.Type()
}

// inOrder returns the first of want that is not in got, after those before it.
func inOrder(got, want []string) string {
	for _, w := range want {
		i := slices.IndexFunc(got, func(g string) bool { return strings.Contains(g, w) })
		if i < 0 {
			return w
		}
		got = got[i+1:]
	}
	return ""
}

func taskFiles() map[string]string {
	return map[string]string{
		"check.sh": checkSh, "add.sh": "add() { echo 0; }\n", "tests/mul.sh": "exit 0\n",
		"x_test.go": "package x\n\nfunc TestX(t *testing.T) {\n}\n",
	}
}

// TestTasks: whatever a model does or claims, a task is complete if and only if its
// criteria say so.
func TestTasks(t *testing.T) {
	needShell(t)
	for _, c := range beadCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, dir := open(t, nil, taskFiles())
			var seen []string
			opts := agent.TaskOptions{
				Session: agent.SessionOptions{Provider: script(t, c.turns...)}, Show: func(e event.Event) { seen = append(seen, short(e)) },
			}
			if c.opts != nil {
				c.opts(&opts)
			}
			task, err := a.StartTask(t.Context(), newTask(dir, c.task), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer task.Close()
			s, err := task.Run(t.Context())
			if err != nil || s.State != c.state || len(s.Beads) != c.beads || !strings.Contains(s.Reason, c.reason) {
				t.Fatalf("%s after %d beads (%s), %v; want %s after %d (%s)\n%s", s.State, len(s.Beads), s.Reason, err, c.state, c.beads, c.reason, strings.Join(seen, "\n"))
			}
			if missing := inOrder(seen, c.events); missing != "" {
				t.Errorf("no %q, in its place, in\n%s", missing, strings.Join(seen, "\n"))
			}
			if c.check != nil {
				c.check(t, dir, s)
			}
		})
	}
}

// TestTaskPrompts: each bead is a fresh session, which knows of the last one what it
// must.
func TestTaskPrompts(t *testing.T) {
	needShell(t)
	a, dir := open(t, nil, taskFiles())
	var prompts []string
	provider := script(t, wrong, "=I set it to 0.", wrong, "=I set it to 0 again.", fix, "=Mended.")
	opts := agent.TaskOptions{Session: agent.SessionOptions{Provider: provider}, OnSession: func(s *agent.Session) {
		go func() {
			for e := range s.Events(context.WithoutCancel(t.Context()), 0) {
				_ = e
			}
		}()
	}}
	opts.Session.Hooks.BeforeModel = func(_ context.Context, req *model.Request) error {
		if len(req.Messages) == 1 {
			prompts = append(prompts, req.Messages[0].Parts.Text())
		}
		return nil
	}
	task, err := a.StartTask(t.Context(), newTask(dir, budgetOf(100_000)), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer task.Close()
	if s, err := task.Run(t.Context()); err != nil || s.State != bead.Committed || len(prompts) != 3 {
		t.Fatalf("%s, %v, %d prompts", s.State, err, len(prompts))
	}
	for i, want := range [][]string{
		{"Mend add.", "Bead 1 of at most 9", "Remaining for this task: 100000 of 100000 tokens", "check: `sh check.sh` succeeds", "5. When the task is complete"},
		{"Bead 2 of at most 9", "add 1 2 is wrong", "Bead 1 changed: notes (create)", "ended with errors", "Tried without success:\n- bead 1: I set it to 0."},
		{"The same errors came twice", "- bead 2: I set it to 0 again."},
	} {
		for _, w := range want {
			if !strings.Contains(prompts[i], w) {
				t.Errorf("no %q in prompt %d:\n%s", w, i+1, prompts[i])
			}
		}
	}
	if strings.Contains(prompts[0], "Previous") || strings.Contains(prompts[1], "came twice") {
		t.Errorf("too much in the prompts:\n%s\n%s", prompts[0], prompts[1])
	}
}

// TestTaskResumes: what stops a task does not lose or repeat anything.
func TestTaskResumes(t *testing.T) {
	needShell(t)
	a, dir := open(t, nil, taskFiles())
	task := newTask(dir, nil)
	first, err := a.StartTask(t.Context(), task, agent.TaskOptions{Session: agent.SessionOptions{Provider: script(t, "echo x >>count", turn{err: "the key is wrong"})}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ResumeTask(t.Context(), task.Task, bead.Limits{}, agent.TaskOptions{}); !errors.Is(err, agent.ErrTaskInUse) {
		t.Errorf("a second runner: %v", err)
	}
	if s, err := first.Run(t.Context()); err == nil || s.State != bead.Running {
		t.Fatalf("without a provider: %s, %v", s.State, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opts := agent.TaskOptions{Session: agent.SessionOptions{Provider: script(t, "echo x >>count", "=1")}, Show: func(e event.Event) {
		if b, ok := e.Body.(event.TaskState); ok && b.State == string(bead.Verifying) {
			cancel()
		}
	}}
	second, err := a.ResumeTask(t.Context(), task.Task, bead.Limits{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := second.Run(ctx); err != nil || s.State != bead.Cancelled || len(s.Beads) != 1 {
		t.Fatalf("cancelled: %s, %v, %d beads", s.State, err, len(s.Beads))
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := a.ResumeTask(t.Context(), task.Task, bead.Limits{MaxBeads: 2}, agent.TaskOptions{Session: agent.SessionOptions{Provider: script(t, fix, "=2")}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := third.Run(t.Context())
	if err != nil || s.State != bead.Committed || len(s.Beads) != 2 || s.Task.MaxBeads != 2 {
		t.Fatalf("%s, %v, %d beads of %d: %s", s.State, err, len(s.Beads), s.Task.MaxBeads, s.Reason)
	}
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "count")); string(data) != "x\nx\n" {
		t.Errorf("the first bead's commands ran: %q", data)
	}
	if _, err := a.ResumeTask(t.Context(), task.Task, bead.Limits{}, agent.TaskOptions{}); err == nil || !strings.Contains(err.Error(), "complete") {
		t.Errorf("a complete task resumes: %v", err)
	}
}

// TestTaskUndo: a task is taken back as a whole, but not what the user did meanwhile.
func TestTaskUndo(t *testing.T) {
	needShell(t)
	home := filepath.Join(t.TempDir(), ".agent")
	a, dir := open(t, func(o *agent.Options) { o.Home = home }, taskFiles())
	spec := newTask(dir, nil)
	task, err := a.StartTask(t.Context(), spec, agent.TaskOptions{Session: agent.SessionOptions{Provider: script(t, wrong, "=1", fix+"; echo mine >both.txt", "=2")}})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := task.Run(t.Context()); err != nil || s.State != bead.Committed {
		t.Fatalf("%s, %v", s.State, err)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "both.txt"), []byte("the user's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	left, err := agent.UndoTask(t.Context(), home, spec.Task)
	if err != nil || !slices.Equal(left, []string{"both.txt"}) {
		t.Errorf("left %q, %v", left, err)
	}
	add, _ := os.ReadFile(filepath.Join(dir, "add.sh"))
	_, notes := os.Stat(filepath.Join(dir, "notes"))
	if string(add) != "add() { echo 0; }\n" || notes == nil {
		t.Errorf("add.sh is %q, notes: %v", add, notes)
	}
	s, err := agent.TaskStatus(t.Context(), home, spec.Task)
	if err != nil || s.State != bead.Cancelled || s.Reason != bead.ReasonUndone {
		t.Errorf("%s (%s), %v", s.State, s.Reason, err)
	}
	if id, err := agent.FindTask(home, spec.Task[:4]); err != nil || id != spec.Task {
		t.Errorf("found %q, %v", id, err)
	}
	if list, err := agent.ListTasks(t.Context(), home); err != nil || len(list) != 1 {
		t.Errorf("listed %d tasks, %v", len(list), err)
	}
}

// TestTaskUndoUnderWay: a task that was stopped in a bead is taken back as well, but not
// what the user did meanwhile.
func TestTaskUndoUnderWay(t *testing.T) {
	needShell(t)
	for state, last := range map[bead.State]any{bead.Running: turn{err: "the key is wrong"}, bead.Verifying: "=1"} {
		home := filepath.Join(t.TempDir(), ".agent")
		a, dir := open(t, func(o *agent.Options) { o.Home = home }, taskFiles())
		spec := newTask(dir, nil)
		ctx, cancel := context.WithCancel(t.Context())
		task, err := a.StartTask(t.Context(), spec, agent.TaskOptions{
			Session: agent.SessionOptions{Provider: script(t, wrong, "=1", fix+"; echo x >made", last)},
			Show: func(e event.Event) {
				if b, ok := e.Body.(event.TaskState); ok && b.Bead == 2 && b.State == string(bead.Verifying) {
					cancel()
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := task.Run(ctx)
		if closed := task.Close(); closed != nil || (err == nil) != (state == bead.Verifying) || len(s.Beads) != 2 || s.Beads[1].State != state {
			t.Fatalf("%s: %+v, %v, %v", state, s.Beads, err, closed)
		}
		if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("the user's\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		left, err := agent.UndoTask(t.Context(), home, spec.Task)
		if want := []string{"mine.txt"}; err != nil || state == bead.Running && !slices.Equal(left, want) {
			t.Errorf("%s: left %q, %v", state, left, err)
		}
		for name, want := range map[string]string{"add.sh": "add() { echo 0; }\n", "made": "", "notes": "", "mine.txt": "the user's\n"} {
			if data, _ := os.ReadFile(filepath.Join(dir, name)); string(data) != want {
				t.Errorf("%s: %s is %q", state, name, data)
			}
		}
		if _, err := a.ResumeTask(t.Context(), spec.Task, bead.Limits{}, agent.TaskOptions{}); err == nil || !strings.Contains(err.Error(), "taken back") {
			t.Errorf("%s: resumed after undo: %v", state, err)
		}
		cancel()
	}
}

// TestTaskNeedsCommand: without a command there is no task.
func TestTaskNeedsCommand(t *testing.T) {
	a, dir := open(t, nil, nil)
	for _, criteria := range [][]event.TaskCriterion{nil, {{Name: "done", Kind: bead.DoneMarker}}, {{Name: "lint", Kind: bead.LintPass, Command: "true"}}, {{Name: "f", Kind: bead.FileExists, Path: "x"}}} {
		_, err := a.StartTask(t.Context(), newTask(dir, func(t *event.TaskStart) { t.Criteria = criteria }), agent.TaskOptions{})
		if !errors.Is(err, bead.ErrNoCommand) {
			t.Errorf("%v: %v", criteria, err)
		}
	}
}
