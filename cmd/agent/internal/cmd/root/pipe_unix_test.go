//go:build unix

package root

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// withoutReader runs agent with a stdout whose reader has gone, and returns how
// it ended and what it said to stderr.
func (w *world) withoutReader(args ...string) (syscall.WaitStatus, string) {
	w.t.Helper()
	r, out, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	if err := r.Close(); err != nil {
		w.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(w.t.Context(), "agent", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.workspace, out, &stderr
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + w.t.TempDir()}
	_ = cmd.Run() // the state says how it ended
	return cmd.ProcessState.Sys().(syscall.WaitStatus), stderr.String()
}

// TestClosedPipe: as agent … | head, a command ends by SIGPIPE, which shells
// report as 141, and says nothing. A session is written down to where it came.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "- text: [One.]")
	home := w.home + "/.agent"
	for i := range 20 {
		keepSession(t, home, fmt.Sprintf("session-%d", i), w.workspace, event.User{Content: model.TextParts(strings.Repeat("long ", 5000))})
	}
	for _, args := range [][]string{
		{"sessions", "list"},
		{"sessions", "list", "--json"},
		{"sessions", "show", "session-1"},
		{"sessions", "export", "--format", "json", "session-1"},
		{"config", "list", "--all"},
		{"completion", "bash"},
		{"exec", "--output-format", "stream-json", "never asked"}, // its first line comes before the model
		{"exec", "hello"},
	} {
		status, stderr := w.withoutReader(args...)
		if !status.Signaled() || status.Signal() != syscall.SIGPIPE {
			t.Errorf("%q ended with %v (exit code %d): %s", args, status, status.ExitStatus(), stderr)
		}
		if strings.Contains(stderr, "goroutine") || strings.Contains(stderr, "agent: ") {
			t.Errorf("%q says: %s", args, stderr)
		}
	}
	latest, err := store.Latest(agent.SessionsDir(home), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	w.resumes(latest.ID, "hello")
	w.gone()
}
