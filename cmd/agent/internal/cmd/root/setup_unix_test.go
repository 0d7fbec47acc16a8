//go:build unix

package root

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
)

// screen is a command on a pseudo-terminal of 40 lines of 100 columns.
type screen struct {
	t      testing.TB
	master *os.File
	tty    *os.File // kept open, to look at its settings
	cmd    *exec.Cmd
	done   chan struct{}
	shown  *vt.Live
	was    *term.State // the terminal's settings before the command
}

// onTerminal starts agent on a separate terminal.
func (w *world) onTerminal(args ...string) *screen { return w.onTerminalWith(nil, args...) }

// onTerminalWith is onTerminal with more environment variables.
func (w *world) onTerminalWith(env []string, args ...string) *screen {
	w.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		w.t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	const width, height = 100, 40
	if err := pty.Setsize(master, &pty.Winsize{Cols: width, Rows: height}); err != nil {
		w.t.Fatal(err)
	}
	s := &screen{t: w.t, master: master, tty: tty, cmd: exec.Command("agent", args...), done: make(chan struct{}), shown: vt.NewLive(width, height)}
	s.was = s.state()
	s.cmd.Dir, s.cmd.Env = w.workspace, append([]string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "GORACE=" + os.Getenv("GORACE")}, env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(s.shown, master) }) // an error is the end of the terminal
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // the state says how it ended
	}()
	w.t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // an error says that it has ended, as it should
		<-s.done
		_ = tty.Close()
		_ = master.Close()
		reading.Wait()
	})
	return s
}

// text returns the scrollback and the screen.
func (s *screen) text() string { return s.shown.All() }

// answer waits until the terminal shows a question and types the answer to it.
func (s *screen) answer(question, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.shown.Wait(ctx, question); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// idle waits until the terminal's title says that no input is processed.
func (s *screen) idle() {
	s.t.Helper()
	if err := await("an idle session", func() (idle bool) {
		s.shown.See(func(v *vt.Terminal) { idle = strings.HasPrefix(v.Title, "agent: ") })
		return idle
	}); err != nil {
		s.t.Fatalf("%v\n%s", err, s.text())
	}
}

// state returns the settings of the terminal.
func (s *screen) state() *term.State {
	s.t.Helper()
	state, err := term.GetState(int(s.tty.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// awaitChange waits until the terminal's settings are changed, as for a key: the
// echo goes off after the question is shown.
func (s *screen) awaitChange() {
	s.t.Helper()
	if err := await("the echo to be off", func() bool { return !reflect.DeepEqual(s.was, s.state()) }); err != nil {
		s.t.Fatal(err)
	}
}

// exits waits for the end and checks the exit code.
func (s *screen) exits(code int) {
	s.t.Helper()
	if err := await("the end of the command", func() bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	}); err != nil {
		s.t.Fatalf("%v\n%s", err, s.text())
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d\n%s", got, code, s.text())
	}
}

const typedKey = "sk-proj-Zx81kQm44TtLw902NnBvCc67"

// TestSetupOnATerminal checks that a key which is typed is not shown.
func TestSetupOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{text: ["yes"]}]`)
	s := w.onTerminal("providers", "setup")
	s.answer("Which provider?", "openai")
	s.answer("› openai", "\r")
	s.answer("Endpoint [https://api.openai.com/v1]:", baseURL(t, w)+"\n")
	s.answer("Key:", "")
	s.awaitChange()
	s.answer("Key:", typedKey+"\n")
	s.answer("Model [gpt-5-mini]:", "\n")
	s.exits(cmdutil.ExitDone)
	if strings.Contains(s.text(), typedKey[:8]) || !strings.Contains(s.text(), "gpt-5-mini answered") {
		t.Errorf("the terminal shows:\n%s", s.text())
	}
	if text := settingsText(t, w); !strings.Contains(text, typedKey) {
		t.Errorf("settings %s", text)
	}
}

// TestSetupInterrupted checks that Ctrl-C at any question leaves the settings
// and the terminal as they were: also where the echo is off.
func TestSetupInterrupted(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{
		"Which provider?": nil, "Endpoint [https://": {"openai\r"}, "Key:": {"openai\r", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `[]`)
			settings := settingsText(t, w)
			s := w.onTerminal("providers", "setup")
			questions := []string{"Which provider?", "Endpoint [https://"}
			for i, text := range before {
				s.answer(questions[i], text)
			}
			if name == "Key:" {
				s.answer(name, "")
				s.awaitChange()
				s.answer(name, "sk-half")
			}
			s.answer(name, "\x03")
			s.answer("agent: interrupted; nothing was written", "")
			s.exits(cmdutil.ExitSIGINT)
			if now := s.state(); !reflect.DeepEqual(s.was, now) {
				t.Errorf("the terminal was %v and is %v", s.was, now)
			}
			if got := settingsText(t, w); got != settings {
				t.Errorf("settings %s", got)
			}
		})
	}
}

// TestConfirmInterrupted checks that Ctrl-C at a yes/no question ends the command
// with the exit code of an interrupt, and that nothing is done.
func TestConfirmInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[]`)
	home := filepath.Join(w.home, ".agent")
	keepSession(t, home, "one", w.home)
	s := w.onTerminal("sessions", "delete", "one")
	s.answer("Permanently delete 1 session (one)? [y/N]", "\x03")
	s.exits(cmdutil.ExitSIGINT)
	if !strings.Contains(s.text(), "agent: interrupted") {
		t.Errorf("the terminal shows:\n%s", s.text())
	}
	if _, err := os.Stat(filepath.Join(home, "sessions", "one.jsonl")); err != nil {
		t.Error(err)
	}
}

func settingsText(t *testing.T, w *world) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, ".agent", "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// baseURL returns where the world's model is.
func baseURL(t *testing.T, w *world) string {
	t.Helper()
	_, after, _ := strings.Cut(settingsText(t, w), `"baseUrl": "`)
	url, _, found := strings.Cut(after, `"`)
	if !found {
		t.Fatal("the settings hold no base URL")
	}
	return url
}
