package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func TestMain(m *testing.M) {
	serveTraces()
	if slices.Contains(os.Args[1:], agent.ReaderFlag) {
		agent.ServeReader()
	}
	if dir := os.Getenv("AGENT_TEST_DURABLE"); dir != "" {
		if err := durableProcess(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// Most tests wait for processes, so that there is room for more than one per core.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// open returns an agent with the real tools, policy and environment, in a
// workspace with the files.
func open(t *testing.T, change func(*agent.Options), files map[string]string) (*agent.Agent, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opts := agent.Options{Dir: dir, Home: t.TempDir(), Permissions: permissions.Options{Mode: permissions.ModeBypass}}
	if change != nil {
		change(&opts)
	}
	a, err := agent.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, dir
}

// call makes a tool call in a new session and returns its result.
func call(t *testing.T, a *agent.Agent, name string, args any) event.ToolResult {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.NewSession(t.Context(), agent.SessionOptions{
		Provider: coretest.Model(coretest.CallTools(model.ToolCall{Name: name, Args: string(text)}), coretest.Say("Done.")),
		Limits:   core.Limits{CommandTimeout: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	events := coretest.Collect(t, s, nil)
	if _, err := s.Submit(t.Context(), core.TextInput("go")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	results := coretest.Bodies[event.ToolResult](events.Drain(t))
	if len(results) != 1 {
		t.Fatalf("%d results", len(results))
	}
	return results[0]
}

type args map[string]any

// TestBadCalls: for any invalid call, the model gets a failure with a code and a
// text that says what to do, and the session continues.
func TestBadCalls(t *testing.T) {
	a, dir := open(t, func(o *agent.Options) { o.Permissions.Mode, o.UnguardedWrites = permissions.ModeAcceptEdits, true }, map[string]string{
		"twice.txt": "same\nsame\n", "binary": "\x7fELF\x00\x00\x01", "sub/x": "",
	})
	for _, tt := range []struct {
		name string
		args args
		code core.ErrorCode
		says string
	}{
		{"no_such_tool", args{}, core.CodeNotFound, "Available tools"},
		{"read_file", args{"path": "x"}, core.CodeValidation, "file_path"},
		{"read_file", args{"file_path": args{"a": 7}}, core.CodeValidation, "at /file_path"},
		{"read_file", args{"file_path": "missing.txt"}, core.CodeNotFound, "missing.txt"},
		{"read_file", args{"file_path": "binary"}, core.CodeIO, "binary"},
		{"read_file", args{"file_path": "sub"}, core.CodeIO, "list_dir"},
		{"edit_file", args{"file_path": "twice.txt", "old_string": "same", "new_string": "x"}, core.CodeValidation, "2"},
		{"edit_file", args{"file_path": "twice.txt", "old_string": "other", "new_string": "x"}, core.CodeValidation, "not found"},
		{"write_file", args{"file_path": filepath.Join(dir, "..", "outside.txt"), "content": "x"}, core.CodePermission, "outside the workspace"},
		{"write_file", args{"file_path": ".git/config", "content": "x"}, core.CodePermission, ".git"},
		{"read_file", args{"file_path": "/etc/hosts"}, core.CodePermission, "outside the workspace"},
		{"shell", args{"command": "mystery hi"}, core.CodePermission, "shell(mystery hi)"},
		{"grep", args{"pattern": "("}, core.CodeValidation, "("},
	} {
		t.Run(fmt.Sprint(tt.name, tt.args), func(t *testing.T) {
			res := call(t, a, tt.name, tt.args)
			if !res.IsError || res.Code != string(tt.code) || !strings.Contains(res.Content.Text(), tt.says) {
				t.Errorf("code %s, %q; want %s with %q", res.Code, res.Content.Text(), tt.code, tt.says)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "outside.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file outside the workspace: %v", err)
	}
}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands of this test are for a POSIX shell")
	}
}

func TestCommandsThatMisbehave(t *testing.T) {
	needShell(t)
	a, dir := open(t, nil, nil)
	t.Run("hangs", func(t *testing.T) {
		res := call(t, a, "shell", args{"command": "echo begun; sleep 1000", "timeout_ms": 2000})
		if res.Code != string(core.CodeTimeout) || !strings.Contains(res.Content.Text(), "begun") || !strings.Contains(res.Content.Text(), "timed out after 2000ms") {
			t.Errorf("%s %q", res.Code, res.Content.Text())
		}
	})
	t.Run("forks a daemon", func(t *testing.T) {
		res := call(t, a, "shell", args{"command": "sleep 1000 & echo $! > pid; echo begun"})
		if !strings.Contains(res.Content.Text(), "begun") || !strings.Contains(res.Content.Text(), "ended 1 background process") {
			t.Errorf("%q", res.Content.Text())
		}
		pid, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		// Ended, but perhaps not reaped yet by its new parent.
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("the daemon is still there: %s", stat)
		}
	})
	t.Run("prints 10 MB on one line", func(t *testing.T) {
		res := call(t, a, "shell", args{"command": "head -c 10000000 /dev/zero | tr '\\0' x", "timeout_ms": 60000})
		if n := len(res.Content.Text()); n > 31_000 {
			t.Errorf("the model got %d bytes", n)
		}
		if res.Output == nil || res.Output.Bytes < 10_000_000 || res.Output.Path == "" {
			t.Fatalf("full output %+v", res.Output)
		}
		if info, err := os.Stat(res.Output.Path); err != nil || info.Size() != res.Output.Bytes {
			t.Errorf("the file of the full output: %v, %v", info, err)
		}
	})
	t.Run("prints invalid UTF-8", func(t *testing.T) {
		res := call(t, a, "shell", args{"command": `printf 'a\377b'`})
		if !strings.Contains(res.Content.Text(), "a\u00FFb") {
			t.Errorf("%q", res.Content.Text())
		}
	})
}

// TestAHandleOpensTheFullOutput: truncated output can be read by its handle
// without approval, also in a resumed session.
func TestAHandleOpensTheFullOutput(t *testing.T) {
	needShell(t)
	a, _ := open(t, func(o *agent.Options) {
		o.Permissions = permissions.Options{Sets: []permissions.RuleSet{{Source: permissions.SourceFlag, Settings: permissions.Settings{Allow: []string{"shell(seq 1 100000)"}}}}}
	}, nil)
	first := coretest.Model(coretest.CallTools(model.ToolCall{Name: "shell", Args: `{"command":"seq 1 100000"}`}), coretest.Say("Done."))
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: first})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), core.TextInput("count")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	seen := lastResult(t, first)
	at := strings.Index(seen, core.HandlePrefix)
	if at < 0 {
		t.Fatalf("no handle in %q", seen[max(0, len(seen)-300):])
	}
	handle := strings.TrimRight(strings.Fields(seen[at:])[0], ":")

	second := coretest.Model(coretest.CallTools(model.ToolCall{Name: "read_file", Args: fmt.Sprintf(`{"file_path":%q,"offset":50000,"limit":1}`, handle)}), coretest.Say("Done."))
	s, err = a.NewSession(t.Context(), agent.SessionOptions{Provider: second, Resume: s.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Submit(t.Context(), core.TextInput("what is in the middle?")); err != nil {
		t.Fatal(err)
	}
	if got := lastResult(t, second); !strings.Contains(got, "50000 | 50000") {
		t.Errorf("read_file of %s gave %q", handle, got)
	}
}

// lastResult returns the text of the last tool result that a model got.
func lastResult(t *testing.T, p *coretest.FakeProvider) string {
	t.Helper()
	reqs := p.Requests()
	msgs := reqs[len(reqs)-1].Messages
	r, ok := msgs[len(msgs)-1].Parts[0].(model.ToolResult)
	if !ok {
		t.Fatalf("the last message is no tool result: %+v", msgs[len(msgs)-1])
	}
	return r.Content.Text()
}

func TestResumeSendsTheSameBytes(t *testing.T) {
	a, _ := open(t, nil, map[string]string{"a.txt": "<one> & \"two\"\n"})
	first := coretest.Model(coretest.CallTools(model.ToolCall{Name: "read_file", Args: `{ "file_path" : "a.txt" }`}), coretest.Say("One and two."))
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: first})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), core.TextInput("read")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	second := coretest.Model(coretest.Say("Again."))
	s2, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: second, Resume: s.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	if _, err := s2.Submit(t.Context(), core.TextInput("again")); err != nil {
		t.Fatal(err)
	}
	before, after := first.Requests()[1], second.Requests()[0]
	b1, _ := json.Marshal(before.Messages)
	b2, _ := json.Marshal(after.Messages)
	if before.System != after.System || !bytes.HasPrefix(b2, bytes.TrimSuffix(b1, []byte("]"))) {
		t.Errorf("the resumed session sends\n%s\nafter\n%s", b2, b1)
	}
}

func TestSessionsOnDisk(t *testing.T) {
	home := t.TempDir()
	a, _ := open(t, func(o *agent.Options) { o.Home = home }, nil)
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model(), Resume: s.ID()}); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a session that is open: %v, want ErrLocked with the owner's pid", err)
	}
	_ = s.Close()
	if _, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model(), Resume: "nope"}); err == nil || !strings.Contains(err.Error(), `no session "nope"`) {
		t.Errorf("a session that is not there: %v", err)
	}
	if _, err := os.Stat(s.Log()); err != nil {
		t.Error(err)
	}
}

// TestOutputsOfGoneSessionsAreRemoved: the outputs of a deleted session are
// removed.
func TestOutputsOfGoneSessionsAreRemoved(t *testing.T) {
	home := t.TempDir()
	gone := filepath.Join(home, "context", "0197-gone")
	if err := os.MkdirAll(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(gone, old, old); err != nil {
		t.Fatal(err)
	}
	a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Home: home})
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model()})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v, want it gone", gone, err)
	}
}

// TestAHomeThatCannotBeWritten: there is no session without its log, unless that is
// optional; then it warns and continues in memory.
func TestAHomeThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a file, not a directory")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	strict, _ := open(t, func(o *agent.Options) { o.Home = file }, nil)
	if _, err := strict.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model()}); !errors.As(err, new(*core.JournalError)) {
		t.Errorf("with a log that cannot be created: %v", err)
	}
	a, _ := open(t, func(o *agent.Options) { o.Home, o.Store.Optional = file, true }, nil)
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model(coretest.Say("Done."))})
	if err != nil {
		t.Fatal(err)
	}
	events := coretest.Collect(t, s, nil)
	out, err := s.Submit(t.Context(), core.TextInput("go"))
	if err != nil || out.Text != "Done." {
		t.Fatalf("%+v, %v", out, err)
	}
	_ = s.Close()
	if w := coretest.Bodies[event.Warning](events.Drain(t)); len(w) != 1 || !strings.Contains(w[0].Message, "in memory only") {
		t.Errorf("warnings %+v", w)
	}
}

func TestSecretsStayOutOfCommandsAndRecords(t *testing.T) {
	needShell(t)
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-very-secret-0123456789")
	a, _ := open(t, func(o *agent.Options) { o.Secrets = []string{"sk-ant-very-secret-0123456789"} }, map[string]string{"leak": "key: sk-ant-very-secret-0123456789\n"})
	if res := call(t, a, "shell", args{"command": "env"}); strings.Contains(res.Content.Text(), "ANTHROPIC_API_KEY") {
		t.Errorf("the command saw the key: %s", res.Content.Text())
	}
	if res := call(t, a, "read_file", args{"file_path": "leak"}); strings.Contains(res.Content.Text(), "very-secret") || !strings.Contains(res.Content.Text(), "[redacted]") {
		t.Errorf("the model saw the key: %s", res.Content.Text())
	}
}

func TestHostToolsReplaceBuiltins(t *testing.T) {
	mine := core.NewTool(core.ToolDefinition{Name: "read_file", Description: "mine"}, nil,
		func(context.Context, *core.Call, struct{}) (core.Result, error) { return core.TextResult("mine"), nil })
	a, _ := open(t, func(o *agent.Options) { o.Tools = []core.Tool{mine}; o.Disallowed = []string{"shell"} }, nil)
	snapshot, err := a.Tools().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, ok := snapshot.Lookup("read_file")
	if _, shell := snapshot.Lookup("shell"); !ok || shell || e.Tool.Definition().Description != "mine" {
		t.Errorf("tools %v, read_file is %q", snapshot.Names(), e.Tool.Definition().Description)
	}
	if res := call(t, a, "read_file", args{}); res.Content.Text() != "mine" {
		t.Errorf("%q", res.Content.Text())
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	for want, opts := range map[string]agent.Options{
		"no-such-directory": {Dir: filepath.Join(t.TempDir(), "no-such-directory")},
		"shell(":            {Dir: t.TempDir(), Permissions: permissions.Options{Sets: []permissions.RuleSet{{Source: permissions.SourceFlag, Settings: permissions.Settings{Allow: []string{"shell("}}}}}},
	} {
		if a, err := agent.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
			_ = a.Close()
		}
	}
}
