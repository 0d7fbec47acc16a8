//go:build unix

package root

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// acpModulesEnv is the variable with the node_modules directory of testdata/acp.
const acpModulesEnv = "AGENT_TEST_ACP_MODULES"

// node runs a program of Node in the workspace, and returns what it prints.
func (w *world) node(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("node", args...)
	cmd.Dir = w.workspace
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + w.t.TempDir(), "GORACE=" + os.Getenv("GORACE")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// acpModules returns the node_modules directory.
func acpModules(t *testing.T) string {
	t.Helper()
	modules := os.Getenv(acpModulesEnv)
	if modules == "" {
		t.Skipf("%s is not set to the node_modules directory of testdata/acp", acpModulesEnv)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	return modules
}

// TestOfficialClient drives agent acp with the protocol's own client library.
func TestOfficialClient(t *testing.T) {
	t.Parallel()
	modules := acpModules(t)
	turns := []string{
		`{calls: [{name: write_file, args: {file_path: a.txt, content: "new\n"}}]}`, `{text: [Wrote it.]}`,
		`{calls: [{name: write_file, args: {file_path: b.txt, content: x}}]}`, `{calls: [{name: write_file, args: {file_path: b.txt, content: x}}]}`, `{text: [Not written.]}`,
		`{calls: [{name: submit_plan, args: {plan: "Change nothing at all."}}]}`, `{text: [Planned.]}`,
		`{calls: [{name: shell, args: {command: "echo started; sleep 60"}}]}`,
	}
	for range 20 {
		turns = append(turns, `{await: never, text: [never]}`)
	}
	w := newWorld(t, "["+strings.Join(turns, ", ")+"]")
	script, err := filepath.Abs(filepath.Join("testdata", "acp", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	agent, err := exec.LookPath("agent")
	if err != nil {
		t.Fatal(err)
	}
	if out := w.node(script, filepath.Join(modules, "@agentclientprotocol", "sdk"), w.workspace, agent, "acp"); strings.TrimSpace(out) != "ok" {
		t.Errorf("the client says %s", out)
	}
}

// TestACPX drives agent acp with acpx, a client for the command line.
func TestACPX(t *testing.T) {
	t.Parallel()
	modules := acpModules(t)
	w := newWorld(t, `[{calls: [{name: write_file, args: {file_path: a.txt, content: "new\n"}}]}, {text: [All done here.]}]`)
	agent, err := exec.LookPath("agent")
	if err != nil {
		t.Fatal(err)
	}
	out := w.node(filepath.Join(modules, "acpx", "dist", "cli.js"), "--approve-all", "--cwd", w.workspace, "--agent", agent+" acp", "exec", "write")
	if data, err := os.ReadFile(filepath.Join(w.workspace, "a.txt")); string(data) != "new\n" || !strings.Contains(out, "All done here.") {
		t.Errorf("the file %q, %v; acpx says\n%s", data, err, out)
	}
}

// TestEditorLeaves: when the editor closes the pipes, or is killed, nothing is left of
// the commands that run. They have their time to finish, which is short here.
func TestEditorLeaves(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(cmd *exec.Cmd, in, out io.Closer) error{
		"stdin":   func(_ *exec.Cmd, in, _ io.Closer) error { return in.Close() },
		"pipes":   func(_ *exec.Cmd, in, out io.Closer) error { return errors.Join(out.Close(), in.Close()) },
		"SIGTERM": func(cmd *exec.Cmd, _, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `[{calls: [{name: shell, args: {timeout_ms: 2000, command: "touch started; sleep 600"}}]}]`)
			cmd, in, out := w.editor("run")
			w.await("started")
			if err := leave(cmd, in, out); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // a signal is no success
			w.gone()
		})
	}
}

// TestEditorStopsReading: a write to an editor that has gone does not kill the process:
// what runs is finished, and the session can be resumed where it was.
func TestEditorStopsReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{calls: [{name: shell, args: {command: "touch started; until [ -e go ]; do sleep 0.02; done; touch finished; echo over"}}]}, {text: [Done.]}]`)
	cmd, in, out := w.editor("run")
	w.await("started")
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.await("finished")
	if err := json.NewEncoder(in).Encode(map[string]any{"jsonrpc": "2.0", "id": 4, "method": "session/list", "params": map[string]any{}}); err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signaled() {
		t.Errorf("it ended by %v", cmd.ProcessState)
	}
	files, err := filepath.Glob(filepath.Join(w.home, ".agent", "sessions", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("logs %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	log := string(data)
	if !strings.Contains(log, "over") || strings.Contains(log, `"type":"cancelled"`) {
		t.Errorf("the log has %s", log)
	}
	w.gone()
}

// editor starts agent acp and sends it a prompt in a new session.
func (w *world) editor(prompt string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser) {
	t := w.t
	t.Helper()
	cmd = exec.Command("agent", "acp", "--permission-mode", "bypass")
	cmd.Dir = w.workspace
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "GORACE=" + os.Getenv("GORACE")}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // an error says that it has ended, as it should
	lines := bufio.NewScanner(out)
	call := func(id int, method string, params any) (result struct{ SessionID string }) {
		t.Helper()
		if err := json.NewEncoder(in).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
			t.Fatal(err)
		}
		for method != "session/prompt" && lines.Scan() {
			var m struct {
				ID     int
				Result json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err == nil && m.ID == id && json.Unmarshal(m.Result, &result) == nil {
				return result
			}
		}
		return result
	}
	call(1, "initialize", map[string]any{"protocolVersion": 1})
	id := call(2, "session/new", map[string]any{"cwd": w.workspace, "mcpServers": []any{}}).SessionID
	call(3, "session/prompt", map[string]any{"sessionId": id, "prompt": []any{map[string]any{"type": "text", "text": prompt}}})
	return cmd, in, out
}
