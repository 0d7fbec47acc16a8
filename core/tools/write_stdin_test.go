package tools_test

import (
	"encoding/json"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
)

// typist calls the tools of one session.
type typist struct {
	*testing.T
	where core.Environment
	tools map[string]core.Tool
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no terminals on this system")
	}
	y := &typist{t, posixShell(t), map[string]core.Tool{}}
	set := tools.Builtin(tools.Options{})
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	list, err := set.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		y.tools[tool.Definition().Name] = tool
	}
	return y
}

func (y *typist) call(name string, in args) (*core.Call, core.Tool) {
	y.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		y.Fatal(err)
	}
	return &core.Call{Name: name, Args: raw, Env: y.where, Session: core.SessionInfo{ID: "s"}}, y.tools[name]
}

// does calls a tool and checks what the result has.
func (y *typist) does(name string, in args, want ...string) string {
	y.Helper()
	call, tool := y.call(name, in)
	result, err := tool.Run(y.Context(), call)
	if err != nil {
		y.Fatal(err)
	}
	text := model.Parts(result.Content).Text()
	for _, w := range want {
		if !strings.Contains(text, w) {
			y.Errorf("%s %v: %q lacks %q", name, in, text, w)
		}
	}
	return text
}

// touches returns what a call of write_stdin is judged by.
func (y *typist) touches(in args) []core.Access {
	y.Helper()
	call, tool := y.call("write_stdin", in)
	list, err := tool.Access(y.Context(), call)
	if err != nil {
		y.Fatal(err)
	}
	return list
}

func (y *typist) starts(command string) {
	y.Helper()
	y.does("shell", args{"command": command, "background": true, "terminal": true, "rows": 30, "cols": 100}, "is running in the background")
}

func TestWriteToShell(t *testing.T) {
	t.Parallel()
	y := newTypist(t)
	y.starts("sh -i")
	y.does("write_stdin", args{"id": "job-1", "text": "x=41; stty size\n", "wait_for": "30 100$"}, "30 100\n", "[job-1 running]")
	y.does("write_stdin", args{"id": "job-1", "text": "echo $((x + 1))", "keys": []string{"enter"}, "wait_for": "42$"}, "42\n")
	// A running command is interrupted as on a terminal; the shell lives on.
	y.does("write_stdin", args{"id": "job-1", "text": "sh -c 'echo be\"\"gin; exec sleep 1000'\n", "wait_for": "begin"}, "begin")
	y.does("write_stdin", args{"id": "job-1", "keys": []string{"ctrl-c"}})
	y.does("write_stdin", args{"id": "job-1", "text": "echo ali''ve\n", "wait_for": "alive"}, "alive\n")
	y.does("write_stdin", args{"id": "job-1", "text": "echo never\n", "wait_for": "something else", "timeout_ms": 2000}, "never\n", "no match for something else in time]")
	y.does("write_stdin", args{"id": "job-1", "keys": []string{"eof"}, "wait_for": "nothing"}, "[job-1 ended with exit code ")
	y.does("write_stdin", args{"id": "job-1", "text": "x"}, `No job "job-1"`)
}

func TestWriteToPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	y := newTypist(t)
	y.starts("TERM=dumb " + python + " -q")
	y.does("write_stdin", args{"id": "job-1", "wait_for": ">>> $"}, ">>> ")
	y.does("write_stdin", args{"id": "job-1", "text": "sum(range(101))\n", "wait_for": "5050"}, "5050")
	y.does("write_stdin", args{"id": "job-1", "text": "import getpass; print('got', getpass.getpass('Pass' + 'word: '))\n", "wait_for": "Password: "}, "Password: ")
	if text := y.does("write_stdin", args{"id": "job-1", "text": "tea4two\n", "wait_for": "got tea.*"}, "got tea4two"); strings.Count(text, "tea4two") != 1 {
		t.Errorf("the password is echoed: %q", text)
	}
	y.does("write_stdin", args{"id": "job-1", "text": "exit(3)\n", "wait_for": "nothing"}, "[job-1 ended with exit code 3]")
}

func TestWriteToDebugger(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip("gdb is not installed")
	}
	y := newTypist(t)
	y.starts("gdb -q -nx")
	y.does("write_stdin", args{"id": "job-1", "wait_for": `\(gdb\) $`, "timeout_ms": 60000}, "(gdb)")
	y.does("write_stdin", args{"id": "job-1", "text": "print 6*7\n", "wait_for": `= 42`, "timeout_ms": 60000}, "$1 = 42")
	y.does("write_stdin", args{"id": "job-1", "text": "quit\n", "wait_for": "nothing", "timeout_ms": 60000}, "[job-1 ended with exit code 0]")
}

// Without a terminal there is a pipe, which stays open until eof.
func TestWriteToPipe(t *testing.T) {
	t.Parallel()
	y := newTypist(t)
	y.does("shell", args{"command": "trap 'echo interrupted' INT; while read -r line; do echo \"got $line\"; done; echo end", "background": true})
	y.does("write_stdin", args{"id": "job-1", "text": "one\ntwo\n", "wait_for": "got two"}, "got one\ngot two\n")
	y.does("write_stdin", args{"id": "job-1", "text": "three\n", "quiet_ms": 200}, "got three\n", "[job-1 running]")
	y.does("write_stdin", args{"id": "job-1", "keys": []string{"ctrl-c", "eof"}, "wait_for": "end"}, "end\n")
}

func TestWriteStdinRefusals(t *testing.T) {
	t.Parallel()
	y := newTypist(t)
	y.does("write_stdin", args{"id": "job-9", "text": "x"}, `No job "job-9". No background commands.`)
	y.does("shell", args{"command": "sleep 1000", "background": true})
	for want, in := range map[string]args{
		`key "f13" is unknown`:         {"id": "job-1", "keys": []string{"f13"}},
		"wait_for is not a valid":      {"id": "job-1", "wait_for": "("},
		"cannot be negative":           {"id": "job-1", "quiet_ms": -1},
		"it does not read its input":   {"id": "job-1", "text": strings.Repeat("x", 64<<10), "timeout_ms": 200},
		"text has more than 64.0 KiB.": {"id": "job-1", "text": strings.Repeat("x", 64<<10+1)},
	} {
		if want == "it does not read its input" {
			y.does("write_stdin", in) // fills the pipe
			in["text"] = strings.Repeat("y", 60<<10)
		}
		y.does("write_stdin", in, want)
	}
	y.does("shell", args{"command": "true", "terminal": true, "rows": 100_000}, "rows and cols can be from 1 to 1000")
}

// TestWriteStdinIsJudged: what is typed is a command, with all that it depends on.
func TestWriteStdinIsJudged(t *testing.T) {
	t.Parallel()
	y := newTypist(t)
	y.starts("sh -i")
	judged := func(in args, want string) {
		t.Helper()
		list := y.touches(in)
		if want == "" && len(list) == 0 {
			return
		}
		if len(list) != 1 || list[0].Scope != core.ScopeShell || list[0].Resource != want || list[0].Unconfined {
			t.Errorf("%v is judged as %+v, want %q", in, list, want)
		}
	}
	judged(args{"id": "job-1", "text": "rm -rf x\n"}, "rm -rf x")
	judged(args{"id": "job-1", "text": "rm -rf x", "keys": []string{"enter"}}, "rm -rf x")
	judged(args{"id": "job-1"}, "")
	judged(args{"id": "job-1", "keys": []string{"ctrl-c"}}, "")
	judged(args{"id": "job-1", "keys": []string{"eof"}}, "")
	y.does("write_stdin", args{"id": "job-1", "text": "cd /\nrm -"})
	judged(args{"id": "job-1", "text": "rf x\n"}, "cd /\nrm -rf x")
	y.does("shell", args{"command": "cat -u", "background": true})
	judged(args{"id": "job-2", "text": "import os\n"}, "cat -u <<'END_OF_INPUT'\nimport os\nEND_OF_INPUT")
	y.does("shell", args{"command": "sh", "background": true, "unsandboxed": true})
	if list := y.touches(args{"id": "job-3", "text": "ls\n"}); len(list) != 1 || !list[0].Unconfined || len(list[0].Argv) != 1 {
		t.Errorf("in a shell without the sandbox: %+v", list)
	}
}

// What is typed stays when the session ends in the middle of it.
func TestWriteStdinEndsWithSession(t *testing.T) {
	t.Parallel()
	y := newTypist(t)
	y.starts("sh -c 'trap \"\" INT; echo $$ ready; exec sleep 1000'")
	y.does("write_stdin", args{"id": "job-1", "wait_for": "ready"}, "ready")
	done := make(chan string, 1)
	go func() { done <- y.does("write_stdin", args{"id": "job-1", "wait_for": "never", "timeout_ms": 600000}) }()
	y.does("job", args{"action": "kill", "id": "job-1"})
	select {
	case text := <-done:
		if !strings.Contains(text, "killed") && !strings.Contains(text, "ended") && !strings.Contains(text, "No job") {
			t.Errorf("%q", text)
		}
	case <-time.After(time.Minute):
		t.Error("the wait did not end with the command")
	}
}
