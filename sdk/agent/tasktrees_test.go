package agent_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/worktree"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// stepModel answers by the step of a bead: a bead runs the command of its step, and
// ends. A step's second bead runs the second command, and so on.
type stepModel struct {
	t        *testing.T
	commands map[string][]string
	together int // sessions that must have begun before one is answered
	usage    int

	mu    sync.Mutex
	begun map[string]int // beads by step
	all   chan struct{}
}

var stepOf = regexp.MustCompile(`step "(\w+)" of the plan`)

func steps(t *testing.T, together int, commands map[string][]string) *stepModel {
	return &stepModel{t: t, commands: commands, together: together, begun: map[string]int{}, all: make(chan struct{}), usage: 10}
}

// Info implements model.Provider.
func (m *stepModel) Info() model.ProviderInfo {
	return script(m.t, "=x").Info()
}

// Stream implements model.Provider.
func (m *stepModel) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	step := ""
	if found := stepOf.FindStringSubmatch(req.Messages[0].Parts.Text()); found != nil {
		step = found[1]
	}
	turns := []any{"=The step is done."}
	if len(req.Messages) == 1 {
		turns = []any{turn{run: m.next(ctx, step), usage: m.usage}}
	}
	return script(m.t, turns...).Stream(ctx, req)
}

func (m *stepModel) next(ctx context.Context, step string) string {
	m.mu.Lock()
	n, total := m.begun[step], 0
	m.begun[step]++
	for _, k := range m.begun {
		total += k
	}
	if total == m.together {
		close(m.all)
	}
	m.mu.Unlock()
	if total <= m.together {
		select {
		case <-m.all:
		case <-ctx.Done():
		}
	}
	return m.commands[step][min(n, len(m.commands[step])-1)]
}

// repository makes the directory a repository with a commit, something staged and a
// stash, and returns a function that describes all of its files.
func repository(t *testing.T, dir string) func() string {
	t.Helper()
	cmd := exec.Command("sh", "-c", `printf 'ignored\n*.ign\n' >.gitignore; git init -q . && git add -A && git commit -qm a && echo b >>add.sh && git stash -q && echo c >staged && git add staged && echo x >ignored`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func() string {
		var all strings.Builder
		err := filepath.WalkDir(filepath.Join(dir, ".git"), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%s %q\n", path, data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all.String()
	}
}

// parallelPlan has two steps that are independent, and one that needs both.
func parallelPlan(t *event.TaskStart) {
	t.Worktrees, t.MaxBeads = 3, 9
	t.Steps = []event.TaskStep{
		{Name: "one", Title: "Write one", Files: []string{"one.txt"}, Criteria: []event.TaskCriterion{{Name: "has-one", Kind: bead.FileExists, Path: "one.txt"}}},
		{Name: "two", Title: "Write two", Files: []string{"dir/*.txt"}, Criteria: []event.TaskCriterion{{Name: "has-two", Kind: bead.FileExists, Path: "dir/two.txt"}}},
		{Name: "last", Title: "Mend add", Needs: []string{"one", "two"}, Files: []string{"add.sh"}},
	}
}

const (
	writeOne = "pwd >one.txt; test ! -e ignored"
	writeTwo = "mkdir -p dir; pwd >dir/two.txt; git stash -q -u; git stash pop -q; git checkout -q -b other"
)

// parallelCase is a plan whose steps may be worked on at once.
type parallelCase struct {
	name     string
	noGit    bool
	together int // beads that work at once
	task     func(*event.TaskStart)
	opts     func(*agent.TaskOptions)
	commands map[string][]string
	state    bead.State
	beads    []string // step, state and place of each
	events   []string
	check    func(t *testing.T, dir string, s bead.Status)
}

func parallelCases() []parallelCase {
	all := map[string][]string{"one": {writeOne}, "two": {writeTwo}, "last": {fix}}
	with := func(step string, commands ...string) map[string][]string {
		m := map[string][]string{"one": {writeOne}, "two": {writeTwo}, "last": {fix}}
		m[step] = commands
		return m
	}
	serial := []string{"one committed", "two committed", "last committed"}
	change := func(f func(*event.TaskStart)) func(*event.TaskStart) {
		return func(t *event.TaskStart) { parallelPlan(t); f(t) }
	}
	return []parallelCase{
		{name: "side by side", together: 2, commands: all, state: bead.Committed, beads: []string{"one committed in worktree", "two committed in worktree", "last committed"}, events: []string{"merging", "has-one pass", "merging", "has-two pass", "bead 3 last", "check pass"}, check: elsewhere},
		{name: "without git", noGit: true, together: 1, commands: with("two", "mkdir dir; echo >dir/two.txt"), state: bead.Committed, beads: serial},
		{name: "one at a time", together: 1, task: change(func(t *event.TaskStart) { t.Worktrees = 1 }), commands: with("two", "mkdir dir; echo >dir/two.txt"), state: bead.Committed, beads: serial},
		{name: "the same directory", together: 1, task: change(func(t *event.TaskStart) { t.Steps[0].Files = []string{"dir/x/one.txt", "one.txt"} }), commands: with("two", "mkdir dir; echo >dir/two.txt"), state: bead.Committed, beads: serial},
		{name: "unknown files", together: 1, task: change(func(t *event.TaskStart) { t.Steps[0].Files = nil }), commands: with("two", "mkdir dir; echo >dir/two.txt"), state: bead.Committed, beads: serial},
		{name: "one may break the other", together: 1, opts: func(o *agent.TaskOptions) { o.Impact = breaks{} }, commands: with("two", "mkdir dir; echo >dir/two.txt"), state: bead.Committed, beads: serial},
		{
			name: "a conflict", together: 2, commands: with("two", "mkdir dir; echo 2 >dir/two.txt; echo two >one.txt", "mkdir dir; echo 2 >dir/two.txt; echo again >>one.txt"), state: bead.Committed,
			beads: []string{"one committed in worktree", "two retrying in worktree", "two committed", "last committed"}, check: func(t *testing.T, dir string, s bead.Status) {
				if end := s.Beads[1].End; len(end.Conflicts) != 1 || !strings.Contains(end.Conflicts[0], "one.txt: it was changed since") || !strings.Contains(end.Reason, "not merged") {
					t.Errorf("conflicts %q, %s", end.Conflicts, end.Reason)
				}
				if data, _ := os.ReadFile(filepath.Join(dir, "one.txt")); !strings.HasSuffix(string(data), "\nagain\n") {
					t.Errorf("one.txt is %q", data)
				}
			},
		},
		{
			name: "both change other lines of a file", together: 2, task: change(func(t *event.TaskStart) {}), commands: map[string][]string{"one": {writeOne + "; sed -i 1s/^/one/ lines"}, "two": {writeTwo + "; sed -i 's/9$/9two/' lines"}, "last": {fix}}, state: bead.Committed,
			beads: []string{"one committed in worktree", "two committed in worktree", "last committed"}, check: func(t *testing.T, dir string, _ bead.Status) {
				if data, _ := os.ReadFile(filepath.Join(dir, "lines")); string(data) != "one1\n2\n3\n4\n5\n6\n7\n8\n9two\n" {
					t.Errorf("lines are %q", data)
				}
			},
		},
		{name: "one fails", together: 2, commands: with("one", "echo >other.txt", writeOne), state: bead.Committed, beads: []string{"one retrying in worktree", "two committed in worktree", "one committed", "last committed"}},
		{name: "one fails, and is taken back", together: 2, task: change(func(t *event.TaskStart) { t.Rollback = true }), commands: with("one", "echo >other.txt", writeOne), state: bead.Committed, beads: []string{"one retrying in worktree", "two committed in worktree", "one committed", "last committed"}, check: func(t *testing.T, dir string, _ bead.Status) {
			if _, err := os.Stat(filepath.Join(dir, "other.txt")); err == nil {
				t.Error("what the failed bead did is still there")
			}
		}},
		{name: "one removes a test", together: 2, commands: with("one", writeOne+"; "+remove), state: bead.Blocked, beads: []string{"one blocked in worktree", "two merging in worktree"}, events: []string{"guard test-removed ask", "task blocked"}},
		{name: "one removes a test, which fails", together: 2, task: change(func(t *event.TaskStart) { t.TestChange = "fail" }), commands: with("one", writeOne+"; "+remove, writeOne), state: bead.Committed, beads: []string{"one retrying in worktree", "two committed in worktree", "one committed", "last committed"}},
		{name: "the budget is too small for two", together: 1, task: change(func(t *event.TaskStart) { t.TokenBudget = 50_000 }), commands: with("two", "mkdir dir; echo >dir/two.txt"), state: bead.Committed, beads: serial},
		{name: "the budget is reserved", together: 2, task: change(func(t *event.TaskStart) { t.TokenBudget = 200_000 }), commands: all, state: bead.Committed, beads: []string{"one committed in worktree", "two committed in worktree", "last committed"}, check: func(t *testing.T, _ string, s bead.Status) {
			if a, b := s.Beads[0].Allowance, s.Beads[1].Allowance; a != b || a+b > 100_000 || s.Beads[0].End.Result.Used != 22 || s.Beads[1].End.Result.Used != 22 {
				t.Errorf("allowances %d and %d, used %d and %d", a, b, s.Beads[0].End.Result.Used, s.Beads[1].End.Result.Used)
			}
		}},
	}
}

// elsewhere: two beads worked in copies, whose repository is not the user's.
func elsewhere(t *testing.T, dir string, _ bead.Status) {
	t.Helper()
	one, _ := os.ReadFile(filepath.Join(dir, "one.txt"))
	two, _ := os.ReadFile(filepath.Join(dir, "dir/two.txt"))
	if string(one) == string(two) || strings.HasPrefix(string(one), dir) || !strings.Contains(string(one), "-worktrees/") {
		t.Errorf("the beads worked in %s and %s", one, two)
	}
	if _, err := os.Stat(filepath.Join(dir, "ignored")); err != nil {
		t.Error(err)
	}
}

// breaks says that everything may break everything.
type breaks struct{}

func (breaks) Section(context.Context, string, []string, []string) string { return "" }
func (breaks) Tests(context.Context, []string) []string                   { return nil }
func (breaks) Affected(context.Context, []string) []string                { return []string{"one.txt", "dir/two.txt"} }

// TestTaskWorktrees: steps that are predicted to change other files are worked on at
// once, each in a copy; what they did is merged and verified in the workspace. Nothing
// of this reaches the user's repository, and no copy is left.
func TestTaskWorktrees(t *testing.T) {
	needShell(t)
	for _, c := range parallelCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := filepath.Join(t.TempDir(), ".agent")
			files := taskFiles()
			files["lines"] = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
			a, dir := open(t, func(o *agent.Options) { o.Home = home }, files)
			git := func() string { return "" }
			if !c.noGit {
				git = repository(t, dir)
			}
			before := git()
			var seen []string
			m := steps(t, c.together, c.commands)
			opts := agent.TaskOptions{Session: agent.SessionOptions{Provider: m}, Show: func(e event.Event) { seen = append(seen, short(e)) }}
			if c.opts != nil {
				c.opts(&opts)
			}
			if c.task == nil {
				c.task = parallelPlan
			}
			task, err := a.StartTask(t.Context(), newTask(dir, c.task), opts)
			if err != nil {
				t.Fatal(err)
			}
			s, err := task.Run(t.Context())
			if closed := task.Close(); err != nil || closed != nil || s.State != c.state || !slices.Equal(places(s), c.beads) {
				t.Fatalf("%s (%s), %v, %v: %q, want %q\n%s", s.State, s.Reason, err, closed, places(s), c.beads, strings.Join(seen, "\n"))
			}
			if missing := inOrder(seen, c.events); missing != "" {
				t.Errorf("no %q, in its place, in\n%s", missing, strings.Join(seen, "\n"))
			}
			if git() != before {
				t.Error("the user's repository has changed")
			}
			if left, _ := filepath.Glob(filepath.Join(changes.Worktrees(home), "*", "*")); len(left) > 0 {
				t.Errorf("worktrees are left: %q", left)
			}
			if c.check != nil {
				c.check(t, dir, s)
			}
		})
	}
}

// places describes the beads of a task.
func places(s bead.Status) (all []string) {
	for _, b := range s.Beads {
		text := b.Step + " " + string(b.State)
		if b.Worktree != "" {
			text += " in worktree"
		}
		all = append(all, text)
	}
	return all
}

// TestTaskWorktreesResume: beads that were stopped side by side continue in their
// worktrees, and one that was blocked does not lose the other's work.
func TestTaskWorktreesResume(t *testing.T) {
	needShell(t)
	home := filepath.Join(t.TempDir(), ".agent")
	a, dir := open(t, func(o *agent.Options) { o.Home = home }, taskFiles())
	repository(t, dir)
	spec := newTask(dir, parallelPlan)
	ctx, cancel := context.WithCancel(t.Context())
	m := steps(t, 2, map[string][]string{"one": {"pwd >>one.txt; echo exit 0 >tests/other.sh; " + remove}, "two": {"mkdir -p dir; echo x >>dir/two.txt"}, "last": {fix}})
	stop := &stopAt{stepModel: m, stop: cancel, left: 2}
	run := func(ctx context.Context, task *agent.Task, err error) bead.Status {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s, err := task.Run(ctx)
		if closed := task.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		return s
	}
	opts := agent.TaskOptions{Session: agent.SessionOptions{Provider: stop}}
	task, err := a.StartTask(t.Context(), spec, opts)
	if s := run(ctx, task, err); s.State != bead.Cancelled || !slices.Equal(places(s), []string{"one running in worktree", "two running in worktree"}) {
		t.Fatalf("%s, %q", s.State, places(s))
	}
	opts.Session.Provider = m
	task, err = a.ResumeTask(t.Context(), spec.Task, bead.Limits{}, opts)
	if s := run(t.Context(), task, err); s.State != bead.Blocked || !slices.Equal(places(s), []string{"one blocked in worktree", "two merging in worktree"}) {
		t.Fatalf("%s (%s), %q", s.State, s.Reason, places(s))
	}
	if _, err := os.Stat(filepath.Join(dir, "dir/two.txt")); err == nil {
		t.Error("a bead is merged although the task is blocked")
	}
	task, err = a.ResumeTask(t.Context(), spec.Task, bead.Limits{TestChange: "allow"}, opts)
	if _, err := worktree.Create(t.Context(), worktree.Options{Root: dir, Home: home, Keep: true, Name: "task-" + spec.Task + "-2"}); err != nil { // as if the second had died before it removed it
		t.Fatal(err)
	}
	if s := run(t.Context(), task, err); s.State != bead.Committed || !slices.Equal(places(s), []string{"one blocked in worktree", "two committed in worktree", "one committed", "last committed"}) {
		t.Fatalf("%s (%s), %q", s.State, s.Reason, places(s))
	}
	if data, err := os.ReadFile(filepath.Join(dir, "dir/two.txt")); err != nil || string(data) != "x\n" {
		t.Errorf("dir/two.txt is %q, %v", data, err)
	}
	if list, err := worktree.List(home, ""); err != nil || len(list) > 0 {
		t.Errorf("worktrees %v are left, %v", list, err)
	}
	if left, err := agent.UndoTask(t.Context(), home, spec.Task); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	for name, want := range map[string]bool{"one.txt": false, "dir/two.txt": false, "tests/mul.sh": true, "staged": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("after undo, %s: %v", name, err)
		}
	}
}

// stopAt cancels when some answers to results of tools were asked for.
type stopAt struct {
	*stepModel
	stop context.CancelFunc
	left int
}

// Stream implements model.Provider.
func (m *stopAt) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	if len(req.Messages) > 1 {
		m.mu.Lock()
		if m.left--; m.left == 0 {
			m.stop()
		}
		m.mu.Unlock()
		<-ctx.Done()
	}
	return m.stepModel.Stream(ctx, req)
}
