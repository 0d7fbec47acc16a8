//go:build unix

package root

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// beadModel works on beads: two commands, each of which adds a line to the file
// effects, and an answer.
type beadModel struct {
	mu       sync.Mutex
	commands int
	seen     map[string]bool // outputs of commands
	asked    chan struct{}
}

var (
	effect   = regexp.MustCompile(`effect-\d+-`)
	planStep = regexp.MustCompile(`the step \\"(\w+)\\" of the plan`)
)

func (m *beadModel) answer(r *modeltest.Request) modeltest.Turn {
	select {
	case m.asked <- struct{}{}:
	default:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, result := range strings.Split(string(r.Body), `"role":"tool"`)[1:] {
		if i := strings.Index(result, `"role"`); i >= 0 {
			result = result[:i]
		}
		content := result[strings.Index(result, `"content"`):]
		if end := strings.Index(content, `"tool_calls"`); end >= 0 {
			content = content[:end]
		}
		for _, e := range effect.FindAllString(content, -1) {
			m.seen[e] = true
		}
	}
	file := "effects"
	if step := planStep.FindSubmatch(r.Body); step != nil {
		file += "-" + string(step[1])
	}
	t := modeltest.Turn{Usage: modeltest.Usage{Prompt: 100, Completion: 10}}
	if strings.Count(string(r.Body), `"role":"tool"`) >= 2 {
		t.Text = []string{"A step.\nDONE"}
		return t
	}
	m.commands++
	args, _ := json.Marshal(map[string]string{"command": fmt.Sprintf("echo effect-%d- | tee -a %s", m.commands, file)}) // a string has JSON
	t.Calls = []modeltest.Call{{ID: fmt.Sprintf("call_%d", m.commands), Name: "shell", Args: []string{string(args)}}}
	return t
}

// task starts agent task with arguments.
func (w *world) task(args ...string) *command {
	w.t.Helper()
	dir := w.t.TempDir()
	a := &command{t: w.t, stdout: filepath.Join(dir, "stdout"), stderr: filepath.Join(dir, "stderr"), done: make(chan struct{}), cmd: exec.Command("agent", append([]string{"task"}, args...)...)}
	a.cmd.Dir = w.workspace
	a.cmd.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + w.t.TempDir(), "GORACE=" + os.Getenv("GORACE")}
	for path, to := range map[string]func(*os.File){a.stdout: func(f *os.File) { a.cmd.Stdout = f }, a.stderr: func(f *os.File) { a.cmd.Stderr = f }} {
		f, err := os.Create(path)
		if err != nil {
			w.t.Fatal(err)
		}
		defer f.Close()
		to(f)
	}
	if err := a.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = a.cmd.Wait() // its status is in ProcessState
		close(a.done)
	}()
	w.t.Cleanup(func() {
		_ = a.cmd.Process.Kill() // an error says that it has ended
		<-a.done
	})
	return a
}

// TestTaskKills kills processes that work on a task at 300 random points, and has
// another one continue: no bead begins or counts twice, no command runs twice, two
// processes never work at once, and the user's repository is not touched.
func TestTaskKills(t *testing.T) {
	kills := 75
	if testing.Short() {
		kills = 2
	}
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			killTask(t, uint64(n), kills, "--criteria", "grep -c . effects; test -e finish", "Work")
		})
	}
}

// TestTaskKillsSideBySide does the same with beads that work side by side in worktrees:
// each is merged once, and no worktree is left.
func TestTaskKillsSideBySide(t *testing.T) {
	t.Parallel()
	kills := 25
	if testing.Short() {
		kills = 6
	}
	type step struct {
		Name, Title  string
		Needs, Files []string
	}
	var steps []step
	for i := range kills + 40 { // more than are done before the last kill
		var needs []string
		for _, s := range steps[max(0, len(steps)-3):] {
			needs = append(needs, s.Name)
		}
		for _, name := range []string{"a", "b", "c"} {
			name = fmt.Sprintf("s%d%s", i, name)
			steps = append(steps, step{Name: name, Title: "Write " + name, Needs: needs, Files: []string{"effects-" + name}})
		}
	}
	plan, err := json.Marshal(map[string]any{"description": "Work", "steps": steps, "criteria": []any{map[string]string{"name": "finish", "kind": "command", "command": "test -e finish"}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, plan, 0o600); err != nil {
		t.Fatal(err)
	}
	s := killTask(t, 4, kills, "--worktrees", "3", file)
	if len(s.Beads) < 3 || s.Beads[2].Worktree == "" {
		t.Errorf("no bead worked beside others: %+v", s.Beads[0])
	}
}

// killTask kills a process that works on a task, and those that resume it.
func killTask(t *testing.T, seed uint64, kills int, task ...string) bead.Status {
	t.Helper()
	w := newWorld(t, "[]")
	m := &beadModel{asked: make(chan struct{}), seen: map[string]bool{}}
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
	before := w.repository()
	flags := []string{"--bare", "--permission-mode", "bypass"}
	r := rand.New(rand.NewPCG(3, seed))
	first := w.task(slices.Concat([]string{"run", "--max-beads", "1000"}, flags, task)...)
	<-m.asked // the task has begun
	home := filepath.Join(w.home, ".agent")
	second := w.task(append([]string{"resume"}, flags...)...)
	<-second.done
	if text := second.read(second.stderr); second.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(text, "another process works on it") {
		t.Errorf("a second process: exit code %d: %s", second.cmd.ProcessState.ExitCode(), text)
	}
	for a := first; ; a = w.task(append([]string{"resume"}, flags...)...) {
		m.killAt(a, r)
		<-a.done
		if status := a.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Fatalf("exit code %d: %s", status.ExitStatus(), a.read(a.stderr))
		}
		if a == first {
			list := w.task("list")
			<-list.done
			if out, advice := list.read(list.stdout), list.read(list.stderr); !strings.Contains(out, " interrupted ") || !strings.Contains(advice, "agent task resume ") {
				t.Errorf("after a kill, the tasks are %s%s", out, advice)
			}
		}
		if kills--; kills == 0 {
			break
		}
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "finish"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last := w.task(append([]string{"resume"}, flags...)...)
	<-last.done
	if code := last.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("the last process: exit code %d: %s", code, last.read(last.stderr))
	}
	if after := w.repository(); after != before {
		t.Error("the user's repository has changed")
	}
	if left, _ := filepath.Glob(filepath.Join(home+"-worktrees", "*", "*")); len(left) > 0 {
		t.Errorf("worktrees are left: %q", left)
	}
	return w.checkBeads(home, m)
}

// killAt kills a command after some model calls and some time.
func (m *beadModel) killAt(a *command, r *rand.Rand) {
	for range r.IntN(7) {
		select {
		case <-m.asked:
		case <-a.done:
			return
		}
	}
	select {
	case <-time.After(time.Duration(r.IntN(120)) * time.Millisecond):
		_ = a.cmd.Process.Kill() // an error says that it has ended
	case <-a.done:
	}
}

// repository makes a repository in the workspace, with a commit, something staged and
// a stash, unless there is one. It returns a hash of all its files.
func (w *world) repository() string {
	w.t.Helper()
	dir := filepath.Join(w.workspace, ".git")
	if _, err := os.Stat(dir); err != nil {
		script := `git init -q . && echo a >a && git add a && git commit -qm a && echo b >a && git stash -q && echo c >c && git add c`
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = w.workspace
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	}
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// checkBeads compares the journal of the only task with its status, and with what its
// commands did.
func (w *world) checkBeads(home string, m *beadModel) bead.Status {
	w.t.Helper()
	list, err := agent.ListTasks(w.t.Context(), home)
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%d tasks, %v", len(list), err)
	}
	s := list[0]
	if s.State != bead.Committed {
		w.t.Errorf("the task is %s", s.State)
	}
	started, ended, used := map[int]int{}, map[int]int{}, 0
	for e, err := range store.Read(w.t.Context(), filepath.Join(agent.TasksDir(home), s.Task.Task), "beads", 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.BeadStart:
			started[b.Bead]++
		case event.BeadEnd:
			ended[b.Bead]++
			used += b.Result.Used
		}
	}
	for i, b := range s.Beads {
		if b.Bead != i+1 || started[b.Bead] != 1 || ended[b.Bead] != 1 {
			w.t.Errorf("bead %d (%d) began %d times and ended %d times", i+1, b.Bead, started[b.Bead], ended[b.Bead])
		}
	}
	if used != s.Used {
		w.t.Errorf("the beads used %d tokens, the task %d", used, s.Used)
	}
	files, err := filepath.Glob(filepath.Join(w.workspace, "effects*"))
	var effects []byte
	for _, f := range files {
		data, readErr := os.ReadFile(f)
		effects, err = append(effects, data...), errors.Join(err, readErr)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for n := 1; n <= m.commands; n++ {
		one := fmt.Sprintf("effect-%d-", n)
		if times := strings.Count(string(effects), one+"\n"); times > 1 || m.seen[one] && times == 0 {
			w.t.Errorf("command %d, seen %t, ran %d times", n, m.seen[one], times)
		}
	}
	w.t.Logf("%d beads, %d commands, %d seen, %d tokens", len(s.Beads), m.commands, len(m.seen), s.Used)
	return s
}
