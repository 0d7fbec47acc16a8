package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

func newIO(t *testing.T) (*cmdutil.IO, *bytes.Buffer) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AGENT_HOME", "")
	var out bytes.Buffer
	return &cmdutil.IO{In: strings.NewReader(""), Out: &out, Err: t.Output(), Env: os.Getenv, Cwd: t.TempDir()}, &out
}

func TestCall(t *testing.T) {
	s, out := newIO(t)
	if err := os.WriteFile(filepath.Join(s.Cwd, "a.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(name, args, want string, code int) {
		t.Helper()
		out.Reset()
		err := (&callOptions{IO: s, args: args}).run(t.Context(), name)
		if cmdutil.ExitCode(err) != code || !strings.Contains(out.String(), want) {
			t.Errorf("%s %s: %v, printed %s", name, args, err, out)
		}
	}
	call("read_file", `{"file_path": "a.txt"}`, "1 | hello\n", cmdutil.ExitDone)
	call("read_file", `{"file_path": "b.txt"}`, "File not found", cmdutil.ExitError)
	call("write_file", `{"file_path": "b.txt", "content": "b"}`, "Permission denied", cmdutil.ExitError)
	call("fly", `{}`, "", cmdutil.ExitError)
	call("read_file", `@none.json`, "", cmdutil.ExitUsage)
	if _, err := os.Stat(filepath.Join(s.Cwd, "b.txt")); err == nil {
		t.Error("the denied call wrote a file")
	}
}

func TestListAndShow(t *testing.T) {
	s, out := newIO(t)
	if err := (&listOptions{IO: s}).run(t.Context()); err != nil || !strings.Contains(out.String(), "\nread_file ") {
		t.Errorf("list: %v\n%s", err, out)
	}
	out.Reset()
	if err := (&showOptions{IO: s}).run(t.Context(), "grep"); err != nil || !strings.HasPrefix(out.String(), "grep (builtin), about ") {
		t.Errorf("show: %v\n%s", err, out)
	}
	err := (&showOptions{IO: s}).run(t.Context(), "grip")
	if cmdutil.ExitCode(err) != cmdutil.ExitError || !strings.HasPrefix(err.Error(), `no tool "grip": expected one of `) {
		t.Errorf("show of an unknown tool: %v", err)
	}
}
