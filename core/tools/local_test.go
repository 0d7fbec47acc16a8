package tools_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

// local returns a local environment, with files in its working directory.
func local(t *testing.T, files map[string]string) (*env.Local, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	where, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := where.Close(); err != nil {
			t.Error(err)
		}
	})
	return where, dir
}

// posixShell is local for tests that need a POSIX shell.
func posixShell(t *testing.T) *env.Local {
	t.Helper()
	where, _ := local(t, nil)
	if shell := where.Info().Shell; shell != "bash" && shell != "sh" {
		t.Skipf("the local shell is %q, not a POSIX shell", shell)
	}
	return where
}

// TestTerminal: a command has a terminal only if it asks for one, without input.
func TestTerminal(t *testing.T) {
	where := posixShell(t)
	if runtime.GOOS == "windows" {
		t.Skip("no terminals on this system")
	}
	const probe = "test -t 0 && echo in; test -t 1 && echo out; test -t 2 && echo err; stty size 2>/dev/null; cat; echo end"
	checkHas(t, tools.Shell(), where, args{"command": probe, "terminal": true}, "", "in\nout\nerr\n40 120\nend\n[exit code 0, ")
	checkHas(t, tools.Shell(), where, args{"command": probe}, "", "end\n[exit code 0, ")
	if _, got := run(t, tools.Shell(), where, args{"command": probe}); strings.Contains(got, "out") {
		t.Errorf("a terminal that was not asked for:\n%s", got)
	}
	checkHas(t, tools.Shell(), where, args{"command": "echo before; (sleep 600; echo never) & : >/dev/tty && echo there", "terminal": true}, "", "before\nthere\n")
	checkHas(t, tools.Shell(), where, args{"command": "echo begun; sleep 600", "terminal": true, "timeout_ms": 2000}, core.CodeTimeout, "begun\n")
	memory := env.NewMemory("", nil)
	memory.Exec = func(context.Context, core.Command) (core.Exit, error) { return core.Exit{}, nil }
	checkHas(t, tools.Shell(), memory, args{"command": "ls", "terminal": true}, core.CodeConfig, "no terminals in memory", "Leave terminal out")
}

func TestLocalShell(t *testing.T) {
	where := posixShell(t)
	checkHas(t, tools.Shell(), where, args{"command": "echo out; echo err >&2; printf end; exit 3"}, "", "out\nerr\nend\n[exit code 3, ")
	checkHas(t, tools.Shell(), where, args{"command": "no_such_command_at_all"}, "", "not found", "[exit code 127, ")
	checkHas(t, tools.Shell(), where, args{"command": "kill -9 $$"}, "", "(no output)\n[ended by signal ")
	checkHas(t, tools.Shell(), where, args{"command": "cat"}, "", "(no output)\n[exit code 0, ") // there is no input
}

// TestLocalShellNeverWaits: programs find no pager, and an editor that fails at
// once.
func TestLocalShellNeverWaits(t *testing.T) {
	where := posixShell(t)
	_, text := run(t, tools.Shell(), where, args{"command": `echo "$PAGER $GIT_PAGER $TERM"; sh -c "$EDITOR"' "$@"' editor file; echo "editor: $?"; $EDITOR file; echo "editor: $?"; env "$EDITOR" file; echo "editor: $?"`})
	for _, want := range []string{"cat cat dumb\n", "no-editor-is-available--give-the-text-as-an-argument"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if n := strings.Count(text, "editor: 127\n"); n != 3 {
		t.Errorf("the editor failed %d of 3 times:\n%s", n, text)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	_, text = run(t, tools.Shell(), where, args{"command": "git init -q && git -c user.name=a -c user.email=a@b.c commit --allow-empty; git rev-parse -q --verify HEAD || echo none"})
	if !strings.Contains(text, "git-commit--m-TEXT") || !strings.Contains(text, "none") {
		t.Errorf("git commit without a message: %q", text)
	}
}

func TestLocalShellTimeout(t *testing.T) {
	where := posixShell(t)
	begin := time.Now()
	result, got := run(t, tools.Shell(), where, args{"command": "echo begun; sleep 60", "timeout_ms": 2000})
	want := "begun\n[ERROR: Command timed out after 2000ms. Partial output is shown above. " +
		"You can retry with a longer timeout by setting the timeout_ms parameter.]"
	if result.Code != core.CodeTimeout || got != want {
		t.Errorf("%s: %s", result.Code, got)
	}
	if took := time.Since(begin); took > 50*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestLocalShellCancel(t *testing.T) {
	where := posixShell(t)
	ctx, cancel := context.WithCancel(t.Context())
	watched := cancelOnOutput{where, cancel}
	result, got := runContext(ctx, t, tools.Shell(), watched, args{"command": "echo begun; sleep 60"}, nil)
	if result.Code != core.CodeCancelled || !strings.HasPrefix(got, "begun\n[The command was cancelled.") {
		t.Errorf("%s: %s", result.Code, got)
	}
}

// cancelOnOutput cancels a command as soon as it prints.
type cancelOnOutput struct {
	core.Environment
	cancel func()
}

func (e cancelOnOutput) Start(ctx context.Context, cmd core.Command) (core.Process, error) {
	w := &cancelWriter{cmd.Stdout.Write, e.cancel}
	cmd.Stdout, cmd.Stderr = w, w
	return e.Environment.Start(ctx, cmd)
}

type cancelWriter struct {
	write  func([]byte) (int, error)
	cancel func()
}

func (w *cancelWriter) Write(p []byte) (int, error) {
	defer w.cancel()
	return w.write(p)
}

// Symbolic links are shown, but neither searched nor followed.
func TestLocalSymlinks(t *testing.T) {
	where, dir := local(t, map[string]string{"real/f.txt": "needle\n"})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("needle\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"loop": ".", "out": outside, "out.txt": filepath.Join(outside, "secret.txt"), "real/up": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	check(t, tools.Grep(), where, args{"pattern": "needle"}, "", "real/f.txt:1:needle")
	check(t, tools.ListDir(), where, args{"depth": 3}, "", "loop@\nout@\nout.txt@\nreal/\n  f.txt (7 bytes)\n  up@")
	check(t, tools.Glob(), where, args{"pattern": "**/f.txt"}, "", "real/f.txt")
	// The model may name a link: the grant is for its target.
	check(t, tools.Grep(), where, args{"pattern": "needle", "path": "real/up/real"}, "", "real/up/real/f.txt:1:needle")
}

func TestLocalFiles(t *testing.T) {
	where, dir := local(t, map[string]string{"closed.txt": "x\n", "run.sh": "#!/bin/sh\n"})
	check(t, tools.ReadFile(), where, args{"file_path": filepath.Join(dir, "run.sh")}, "", "1 | #!/bin/sh")
	if runtime.GOOS == "windows" {
		return
	}
	script := filepath.Join(dir, "run.sh")
	if err := os.Chmod(script, 0o750); err != nil {
		t.Fatal(err)
	}
	checkHas(t, tools.EditFile(), where, args{"file_path": "run.sh", "old_string": "sh\n", "new_string": "bash\n"}, "", "1 replacement")
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v: an edit must keep it", info.Mode(), err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	if err := os.Chmod(filepath.Join(dir, "closed.txt"), 0); err != nil {
		t.Fatal(err)
	}
	checkHas(t, tools.ReadFile(), where, args{"file_path": "closed.txt"}, core.CodePermission, "permission denied")
}

// Opening a named pipe would block until there is a writer.
func TestLocalNamedPipe(t *testing.T) {
	where, dir := local(t, nil)
	mkfifo, err := exec.LookPath("mkfifo")
	if err != nil {
		t.Skip("mkfifo is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), mkfifo, filepath.Join(dir, "pipe")).CombinedOutput(); err != nil {
		t.Skipf("no named pipes here: %v %s", err, out)
	}
	checkHas(t, tools.ReadFile(), where, args{"file_path": "pipe"}, core.CodeIO, "a named pipe")
	check(t, tools.Grep(), where, args{"pattern": "x"}, "", "No matches for x in . (0 files searched).")
	check(t, tools.ListDir(), where, args{}, "", "pipe (a named pipe)")
}

func BenchmarkLocalReadFile(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(numberedLines(200)), 0o644); err != nil {
		b.Fatal(err)
	}
	where, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer where.Close()
	benchmarkTool(b, tools.ReadFile(), where, `{"file_path":"f"}`)
}
