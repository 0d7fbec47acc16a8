//go:build unix

package root

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// world is a workspace, a home and a model for the command in a process of its
// own.
type world struct {
	*fakeModel
	t         testing.TB
	workspace string
	home      string
}

func newWorld(t testing.TB, turns string) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{fakeModel: &fakeModel{}, t: t, workspace: filepath.Join(root, "ws"), home: filepath.Join(root, "home")}
	url, err := w.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	if err := os.Mkdir(w.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeSettings(w.home, url); err != nil {
		t.Fatal(err)
	}
	w.model(turns)
	return w
}

func (w *world) model(turns string) {
	w.t.Helper()
	if err := w.play(w.workspace, []byte(turns)); err != nil {
		w.t.Fatal(err)
	}
}

// command is a running agent.
type command struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr string // files
	done           chan struct{}
}

// exec starts agent exec with stream-json and leave to do anything.
func (w *world) exec(args ...string) *command {
	w.t.Helper()
	return w.execWith(nil, append([]string{"--permission-mode", "bypass"}, args...)...)
}

// execWith starts agent exec with stream-json and more of an environment.
func (w *world) execWith(env []string, args ...string) *command {
	w.t.Helper()
	return w.run(env, append([]string{"exec", "--output-format", "stream-json"}, args...)...)
}

// run starts agent with more of an environment.
func (w *world) run(env []string, args ...string) *command {
	w.t.Helper()
	a := &command{
		t: w.t, stdout: filepath.Join(w.t.TempDir(), "stdout"), stderr: filepath.Join(w.t.TempDir(), "stderr"), done: make(chan struct{}),
		cmd: exec.Command("agent", args...),
	}
	a.cmd.Dir = w.workspace
	a.cmd.Env = append([]string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + w.t.TempDir(), "GORACE=" + os.Getenv("GORACE")}, env...)
	for _, to := range []struct {
		path string
		set  func(*os.File)
	}{
		{a.stdout, func(f *os.File) { a.cmd.Stdout = f }}, {a.stderr, func(f *os.File) { a.cmd.Stderr = f }},
	} {
		f, err := os.Create(to.path)
		if err != nil {
			w.t.Fatal(err)
		}
		defer f.Close()
		to.set(f)
	}
	if err := a.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(a.done)
		_ = a.cmd.Wait() // the state says how it ended
	}()
	w.t.Cleanup(func() {
		_ = a.cmd.Process.Kill() // an error says that it has ended, as it should
		<-a.done
	})
	return a
}

func (a *command) signal(sig syscall.Signal) {
	a.t.Helper()
	if err := a.cmd.Process.Signal(sig); err != nil {
		a.t.Fatal(err)
	}
}

// wait waits for the end and returns the exit status.
func (a *command) wait() syscall.WaitStatus {
	a.t.Helper()
	if err := await("the end of the command", func() bool {
		select {
		case <-a.done:
			return true
		default:
			return false
		}
	}); err != nil {
		a.t.Fatalf("%v\nstdout: %s\nstderr: %s", err, a.read(a.stdout), a.read(a.stderr))
	}
	return a.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// exits waits for the end and checks the exit code, the stream and its result,
// which it returns with the session's id.
func (a *command) exits(code int) (event.Result, string) {
	a.t.Helper()
	if status := a.wait(); status.ExitStatus() != code {
		a.t.Errorf("exit code %d, want %d", status.ExitStatus(), code)
	}
	out := a.read(a.stdout)
	if err := checkStream(out); err != nil {
		a.t.Fatalf("%v\nstdout: %s\nstderr: %s", err, out, a.read(a.stderr))
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last event.Event
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		a.t.Fatal(err)
	}
	result := last.Body.(event.Result)
	if result.ExitCode != code {
		a.t.Errorf("the result says exit code %d, want %d", result.ExitCode, code)
	}
	return result, last.Session
}

func (a *command) read(path string) string {
	a.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(data)
}

func (w *world) await(file string) {
	w.t.Helper()
	if err := await("the file "+file, func() bool { return w.has(file) }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) has(file string) bool {
	_, err := os.Stat(filepath.Join(w.workspace, file))
	return err == nil
}

// gone waits until no process works in the workspace any more.
func (w *world) gone() {
	w.t.Helper()
	if err := await("the end of all processes", func() bool { return len(processesIn(w.t, w.workspace)) == 0 }); err != nil {
		w.t.Fatalf("%v: %q are left", err, processesIn(w.t, w.workspace))
	}
}

// resumes goes on with a session and checks that the model hears of what
// became of the call.
func (w *world) resumes(session, want string) {
	w.t.Helper()
	w.model("- text: [Going on.]")
	a := w.exec("--resume", session, "Go on")
	if result, _ := a.exits(0); result.Text != "Going on." {
		w.t.Errorf("the session goes on with %q", result.Text)
	}
	requests := w.chat.Requests()
	if body := requests[len(requests)-1].Body; !bytes.Contains(body, []byte(want)) {
		w.t.Errorf("the model is not told %q: %s", want, body[max(0, len(body)-1000):])
	}
	if err := w.checkPrefixes(); err != nil {
		w.t.Error(err)
	}
}

const patientTool = `
- text: [Working.]
  calls:
    - {name: shell, args: {timeout_ms: 300000, command: "COMMAND"}}
    - {name: shell, args: {command: "echo >second"}}
- text: [Never.]`

// TestInterrupt: the first Ctrl-C interrupts the running command, which may clean
// up or ignore it; nothing else is started, and the session can continue.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ command, want string }{
		"cleans up": {"trap 'echo cleaned; echo >finished; exit 3' INT; echo >started; while :; do sleep 0.02; done", `cleaned\n[The user interrupted the command. Its output is shown above.]\n[exit code 3`},
		"ends":      {"trap 'echo >finished' EXIT; echo half; sh -c 'echo >started; exec sleep 1000'", `half\n[The user interrupted the command. Its output is shown above.]\n[`},
		"ignores":   {"trap '' INT; echo >started; until [ -e go ]; do sleep 0.02; done; echo >finished; echo made it", `made it\n[The user interrupted the command. Its output is shown above.]\n[exit code 0`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.Replace(patientTool, "COMMAND", tt.command, 1))
			a := w.exec("Work")
			w.await("started")
			a.signal(syscall.SIGINT)
			if err := await("the word on Ctrl-C", func() bool {
				return strings.Contains(a.read(a.stderr), "interrupting what is running; press Ctrl-C again to abort it")
			}); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(w.workspace, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			result, session := a.exits(130)
			if result.Outcome != "cancelled" || !w.has("finished") || w.has("second") || len(w.chat.Requests()) != 1 {
				t.Errorf("outcome %q, tool finished: %t, next one ran: %t, %d requests", result.Outcome, w.has("finished"), w.has("second"), len(w.chat.Requests()))
			}
			w.gone()
			w.resumes(session, tt.want)
		})
	}
}

// stubbornTool is a command that does not heed SIGTERM, with children in the
// background, one of which does not either.
const stubbornTool = `
- calls:
    - name: shell
      args:
        timeout_ms: 300000
        command: |
          trap '' TERM INT HUP
          sleep 1000 &
          (trap '' TERM; while :; do sleep 1; done) &
          echo half done
          echo >started
          while :; do sleep 1; done
- text: [Never.]`

func TestSecondInterruptAborts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stubbornTool)
	a := w.exec("Work")
	w.await("started")
	a.signal(syscall.SIGINT)
	if err := await("the word on Ctrl-C", func() bool { return strings.Contains(a.read(a.stderr), "press Ctrl-C again") }); err != nil {
		t.Fatal(err)
	}
	second := time.Now()
	a.signal(syscall.SIGINT)
	result, session := a.exits(130)
	t.Logf("aborted within %s", time.Since(second).Round(10*time.Millisecond))
	if result.Outcome != "aborted" {
		t.Errorf("outcome %q", result.Outcome)
	}
	w.gone()
	w.resumes(session, "cancelled")
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stubbornTool)
	a := w.exec("Work")
	w.await("started")
	a.signal(syscall.SIGTERM)
	result, session := a.exits(143)
	if result.Outcome != "aborted" {
		t.Errorf("outcome %q", result.Outcome)
	}
	w.gone()
	w.resumes(session, "cancelled")
}

func TestInterruptWhileTheModelAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "- {text: [Never.], touch: asked, await: never}")
	a := w.exec("Work")
	w.await("asked")
	a.signal(syscall.SIGINT)
	result, session := a.exits(130)
	if result.Outcome != "cancelled" {
		t.Errorf("outcome %q", result.Outcome)
	}
	w.resumes(session, "Work")
}

func TestKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stubbornTool)
	a := w.exec("Work")
	w.await("started")
	a.signal(syscall.SIGKILL)
	if status := a.wait(); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", status.Signal())
	}
	w.gone()
	var init event.Event
	first, _, _ := strings.Cut(a.read(a.stdout), "\n")
	if err := json.Unmarshal([]byte(first), &init); err != nil {
		t.Fatal(err)
	}
	w.resumes(init.Session, "The call was interrupted when the agent ended")
}
