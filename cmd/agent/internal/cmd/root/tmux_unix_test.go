//go:build unix

package root

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/coretest"
)

// tmux is an agent in tmux.
type tmux struct {
	t      *testing.T
	socket string
}

// inTmux starts an agent in tmux, on a screen of that size.
func (w *world) inTmux(t *testing.T, width, height int, args ...string) *tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	m := &tmux{t, filepath.Join(t.TempDir(), "tmux")}
	cmd := exec.Command("tmux", append([]string{
		"-f", "/dev/null", "-S", m.socket, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", w.workspace, "agent",
	}, args...)...)
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "LC_ALL=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() })
	return m
}

func (m *tmux) text() string {
	out, _ := exec.Command("tmux", "-S", m.socket, "capture-pane", "-p").Output() // none when it has ended
	return string(out)
}

// keys presses keys, by their names in tmux.
func (m *tmux) keys(keys ...string) {
	m.t.Helper()
	if out, err := exec.Command("tmux", append([]string{"-S", m.socket, "send-keys"}, keys...)...).CombinedOutput(); err != nil {
		m.t.Fatalf("tmux: %v: %s", err, out)
	}
}

// sees waits until the screen has all texts.
func (m *tmux) sees(texts ...string) {
	m.t.Helper()
	for deadline := time.Now().Add(coretest.Patience); ; time.Sleep(10 * time.Millisecond) {
		now, missing := m.text(), ""
		for _, text := range texts {
			if !strings.Contains(now, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%q did not come; the screen is\n%s", missing, now)
		}
	}
}

// TestTmux goes through the screens of the dialogue with their keys.
func TestTmux(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: read_file, args: {file_path: a.txt}}]},
		{calls: [{name: edit_file, args: {file_path: a.txt, old_string: old, new_string: new, replace_all: true}}]},
		{calls: [{name: shell, args: {command: "while echo tick; do sleep 0.1; done", background: true}}]},
		{text: ["First answer."]},
		{calls: [{name: shell, args: {command: "echo hello > b.txt"}}]},
		{text: ["Second answer."]},
		{calls: [{name: shell, args: {command: "sleep 100"}}]},
		{calls: [{name: submit_plan, args: {plan: "# Plan\n\n1. Write **c.txt**"}}]},
		{text: ["Third answer."]}]`)
	lines := "old 1\n"
	for i := range 20 {
		lines += fmt.Sprintf("line %d\n", i)
	}
	lines += "old 2\n"
	if err := os.WriteFile(filepath.Join(w.workspace, "a.txt"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	m := w.inTmux(t, 100, 30, "--set", "agent.planDir=plans")
	m.sees("· default")
	m.keys("Change it", "Enter")
	m.sees("? Edit a.txt?", "-old 1", "+new 1", "h take some of the changes")
	m.keys("h")
	m.sees("Take which changes?", "[x] hunk 1 of 2", "[x] hunk 2 of 2")
	m.keys("Space", "Down", "Enter")
	m.sees("22 +new 2", "y yes, once")
	m.keys("y")
	m.sees("First answer.", "1 job (/jobs)")
	if data, _ := os.ReadFile(filepath.Join(w.workspace, "a.txt")); string(data) != strings.Replace(lines, "old 2", "new 2", 1) {
		t.Errorf("a.txt is %q", data)
	}

	m.keys("/jobs", "Enter")
	m.sees("In the background", "› ● job-1", "running")
	m.keys("Enter")
	m.sees("job-1: while echo tick", "tick\ntick\n")
	m.keys("q", "x", "y", "Enter")
	m.sees("In the background", "killed")
	m.keys("q")
	m.sees("First answer.", "> ")

	m.keys("C-t")
	m.sees("The conversation so far", "First answer.")
	m.keys("f", "/")
	m.keys("Change it", "Enter", "c")
	m.sees("✓ edit_file", "q closes")
	m.keys("q")

	m.keys("Write b", "Enter")
	m.sees("Expected, as far as it can be told", "b.txt · new file", "1 +hello")
	m.keys("v")
	m.sees("q closes", "1 +hello")
	m.keys("q")
	m.sees("y yes, once")
	m.keys("y")
	m.sees("Second answer.")

	m.keys("Sleep", "Enter")
	m.sees("shell sleep 100", "Ctrl-C stops")
	m.keys("one", "Enter", "two", "Enter")
	m.sees("queued: one", "queued: two")
	m.keys("/queue", "Enter")
	m.sees("Queued messages", "›  1  one", "2  two")
	m.keys("J")
	m.sees("1  two", "›  2  one")
	m.keys("d")
	m.keys("q", "Escape")
	m.sees("Not sent yet", "queued: two")
	m.keys("BTab", "BTab")
	m.sees("· plan")
	m.keys("Enter") // sends the queue
	m.sees("Carry out this plan?", "1. Write c.txt", "plans/")
	m.keys("2")
	m.sees("Third answer.", "accept-edits")
	plans, _ := filepath.Glob(filepath.Join(w.workspace, "plans", "*.md"))
	if len(plans) != 1 {
		t.Errorf("the plans are %q", plans)
	}
	m.keys("/quit", "Enter")
	w.gone() // before its files are removed
}
