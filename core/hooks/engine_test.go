package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/hooks"
)

// engine returns an engine for hooks in Claude Code's form.
func engine(t *testing.T, o hooks.Options, src hooks.Source, json string) *hooks.Engine {
	t.Helper()
	if src.Name == "" {
		src.Name = "test"
	}
	defs, _, err := hooks.Parse(src, []byte(json))
	if err != nil {
		t.Fatal(err)
	}
	o.Hooks = defs
	return hooks.New(o)
}

// place is a workspace on this machine.
func place(t *testing.T) hooks.Place {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the hooks are for a POSIX shell")
	}
	dir := t.TempDir()
	local, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	return hooks.Place{Env: local, Session: core.SessionInfo{ID: "s", Dir: local.Info().Dir}}
}

// preToolUse is a file with one guard.
func preToolUse(handler string) string {
	return `{"hooks": {"PreToolUse": [{"hooks": [` + handler + `]}]}}`
}

func command(script string) string {
	text, _ := json.Marshal(script)
	return fmt.Sprintf(`{"type": "command", "command": %s, "timeout": 20}`, text)
}

func bash(line string) *hooks.Call {
	args, _ := json.Marshal(map[string]string{"command": line})
	return &hooks.Call{ID: "c", Name: "shell", Args: args, Dir: "/w"}
}

// TestGuard runs guards as processes.
func TestGuard(t *testing.T) {
	t.Parallel()
	decision := func(word string) string {
		return `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + word + `","permissionDecisionReason":"because"}}'`
	}
	tests := []struct {
		name, handler string
		decided       bool
		verdict       core.Verdict
		reason        string
	}{
		{"silent", command("true"), false, 0, ""},
		{"exit code 2", command("echo no way >&2; exit 2"), true, core.Deny, "no way"},
		{"deny", command(decision("deny")), true, core.Deny, "because"},
		{"ask", command(decision("ask")), true, core.Ask, "because"},
		{"allow", command(decision("allow")), true, core.Allow, "because"},
		{"defer", command(decision("defer")), false, 0, ""},
		{"old form", command(`echo '{"decision":"block","reason":"old"}'`), true, core.Deny, "old"},
		{"old form, approved", command(`echo '{"decision":"approve"}'`), true, core.Allow, ""},
		{"why in the system message", command(`echo '{"hookSpecificOutput":{"permissionDecision":"deny"},"systemMessage":"not today"}'`), true, core.Deny, "not today"},
		{"two answers", command(`echo '{"async":true}'; echo '{"decision":"approve"}'`), true, core.Deny, "not the JSON of a hook"},
		{"exit code 2 beats JSON", command(decision("allow") + "; exit 2"), true, core.Deny, "because"},
		{"unknown decision", command(decision("maybe")), true, core.Deny, "maybe"},
		{"crash", command("kill -9 $$"), true, core.Deny, "signal"},
		{"exit code 1", command("exit 1"), true, core.Deny, "exit code 1"},
		{"exit code 1 after allow", command(decision("allow") + "; exit 1"), true, core.Deny, "exit code 1"},
		{"exit code 1 after deny", command(decision("deny") + "; exit 1"), true, core.Deny, "because"},
		{"not found", command("/nonexistent/guard"), true, core.Deny, "exit code 127"},
		{"not found, without a shell", `{"type": "command", "command": "/nonexistent/guard", "args": []}`, true, core.Deny, "failed"},
		{"rubbish", command("echo rubbish"), true, core.Deny, "not JSON"},
		{"half of JSON", command(`echo '{"decision":'`), true, core.Deny, "not the JSON of a hook"},
		{"too much", command("yes | head -c 2000000"), true, core.Deny, "more than 1 MiB"},
		{"stalls", `{"type": "command", "command": "sleep 60", "timeout": 0.2}`, true, core.Deny, "timed out"},
		{"loosened", `{"type": "command", "command": "exit 1", "onError": "allow"}`, false, 0, ""},
		{"loosened, and denies", `{"type": "command", "command": "exit 2", "onError": "allow"}`, true, core.Deny, "exit code 2"},
		{"deny beats allow", command(decision("allow")) + "," + command(decision("deny")), true, core.Deny, "because"},
		{"ask beats allow", command(decision("allow")) + "," + command(decision("ask")), true, core.Ask, "because"},
		{"broken", `{"type": "script", "command": "true"}`, true, core.Deny, "unknown type"},
		{"model without a model", `{"type": "prompt", "prompt": "no rm"}`, true, core.Deny, "no model"},
		{"server without servers", `{"type": "mcp_tool", "server": "s", "tool": "t"}`, true, core.Deny, `no mcp "s"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := engine(t, hooks.Options{}, hooks.Source{}, preToolUse(tt.handler)).
				Run(t.Context(), place(t), hooks.Input{Event: hooks.PreToolUse}, bash("ls"), nil)
			if out.Decided != tt.decided || out.Verdict != tt.verdict || !strings.Contains(out.Reason, tt.reason) {
				t.Errorf("decided = %v, %v, %q; want %v, %v, %q", out.Decided, out.Verdict, out.Reason, tt.decided, tt.verdict, tt.reason)
			}
		})
	}
}

// TestBackground reads the answer of a hook that says that it works in the background.
func TestBackground(t *testing.T) {
	t.Parallel()
	for want, script := range map[string]string{
		"late":  `echo '{"async":true,"asyncTimeout":1000}'; echo '{"hookSpecificOutput":{"additionalContext":"late"}}'; echo '{"metrics":{}}'`,
		"first": `echo '{"hookSpecificOutput":{"additionalContext":"first"}} and text'`,
		"":      `echo '{"async":true}'`,
	} {
		out := engine(t, hooks.Options{}, hooks.Source{}, `{"SessionStart": [{"hooks": [`+command(script)+`]}]}`).
			Run(t.Context(), place(t), hooks.Input{Event: hooks.SessionStart, Source: "startup"}, nil, nil)
		if len(out.Results) != 1 || out.Results[0].Err != nil || strings.Join(out.Context, "") != want {
			t.Errorf("%s: %+v", script, out)
		}
	}
}

// TestGuardsUnderLoad makes a thousand calls, of which none may get through.
func TestGuardsUnderLoad(t *testing.T) {
	t.Parallel()
	p := place(t)
	handlers := []string{
		`{"type": "command", "command": "sleep 60", "timeout": 0.02}`,
		`{"type": "command", "command": "kill -9 $$"}`,
		`{"type": "command", "command": "echo '{\"permissionDecision\": '"}`,
		`{"type": "command", "command": "echo allow"}`,
		`{"type": "command", "command": "exit 3"}`,
	}
	var engines []*hooks.Engine
	for _, h := range handlers {
		engines = append(engines, engine(t, hooks.Options{}, hooks.Source{}, preToolUse(h)))
	}
	calls := 1000
	if testing.Short() {
		calls = 100
	}
	var wg sync.WaitGroup
	gate := make(chan struct{}, 16)
	for i := range calls {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if out := engines[i%len(engines)].Run(t.Context(), p, hooks.Input{Event: hooks.PreToolUse}, bash("ls"), nil); !out.Blocked() {
				t.Errorf("call %d got through: %s", i, handlers[i%len(handlers)])
			}
		})
	}
	wg.Wait()
}

// TestInput shows what a command gets.
func TestInput(t *testing.T) {
	t.Parallel()
	p := place(t)
	dir := p.Session.Dir
	e := engine(t, hooks.Options{}, hooks.Source{Vars: map[string]string{"CLAUDE_PLUGIN_ROOT": "/plugins/lint", "user_config.KEY": "k"}},
		preToolUse(`{"type": "command", "command": "cat >in.json; echo \"$CLAUDE_PROJECT_DIR $CLAUDE_PLUGIN_ROOT ${user_config.KEY}\" >vars; test -t 0 || test -t 1 || (: </dev/tty) 2>/dev/null || echo no-tty >>vars"}`))
	call := &hooks.Call{ID: "c1", Name: "edit_file", Args: json.RawMessage(`{"file_path":"a.go","old_string":"x","new_string":"y","replace_all":true}`), Dir: dir}
	if out := e.Run(t.Context(), p, hooks.Input{Event: hooks.PreToolUse, Session: "s", Cwd: dir}, call, nil); out.Decided {
		t.Fatal(out.Reason)
	}
	var in map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "in.json"))
	if err != nil || json.Unmarshal(data, &in) != nil {
		t.Fatal(err, string(data))
	}
	want := map[string]any{
		"session_id": "s", "transcript_path": "", "cwd": dir, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "c1",
		"tool_input": map[string]any{"file_path": filepath.Join(dir, "a.go"), "old_string": "x", "new_string": "y", "replace_all": true},
	}
	if fmt.Sprint(in) != fmt.Sprint(want) {
		t.Errorf("input = %v, want %v", in, want)
	}
	vars, _ := os.ReadFile(filepath.Join(dir, "vars"))
	if got, want := string(vars), dir+" /plugins/lint k\nno-tty\n"; got != want {
		t.Errorf("variables = %q, want %q", got, want)
	}
}

// TestMapping shows tools and their arguments in other programs' words, and back.
func TestMapping(t *testing.T) {
	t.Parallel()
	tests := []struct {
		matcher     string
		call        hooks.Call
		name, input string // as the hook gets them; empty if it does not run
		answer      string // updatedInput
		back        string
	}{
		{"Bash", hooks.Call{Name: "shell", Args: json.RawMessage(`{"command":"ls","timeout_ms":5,"background":true}`)}, "Bash", `{"command":"ls","run_in_background":true,"timeout":5}`, `{"command":"ls -l","timeout":7}`, `{"command":"ls -l","timeout_ms":7}`},
		{"shell", hooks.Call{Name: "shell", Args: json.RawMessage(`{"command":"ls"}`)}, "Bash", `{"command":"ls"}`, "", ""},
		{"Bash", hooks.Call{Name: "write_stdin", Args: json.RawMessage(`{"id":"1","text":"rm x"}`)}, "write_stdin", `{"command":"rm x","id":"1"}`, "", ""},
		{"Write|Edit", hooks.Call{Name: "apply_patch", Args: json.RawMessage(`{"patch":"p"}`), Files: []string{"/w/a"}}, "apply_patch", `{"command":"p","file_path":"/w/a"}`, `{"command":"q","file_path":"/w/a"}`, `{"patch":"q"}`},
		{"Write", hooks.Call{Name: "edit_file", Args: json.RawMessage(`{}`)}, "", "", "", ""},
		{"Grep", hooks.Call{Name: "grep", Args: json.RawMessage(`{"pattern":"x","glob_filter":"*.go","case_insensitive":true}`)}, "Grep", `{"-i":true,"glob":"*.go","pattern":"x"}`, `{"-i":false,"pattern":"y"}`, `{"case_insensitive":false,"pattern":"y"}`},
		{"Task", hooks.Call{Name: "spawn_agent", Args: json.RawMessage(`{"task":"t","agent":"reviewer"}`)}, "Agent", `{"prompt":"t","subagent_type":"reviewer"}`, "", ""},
		{"AskUserQuestion", hooks.Call{Name: "ask_user", Args: json.RawMessage(`{"question":"q","options":["a"]}`)}, "AskUserQuestion", `{"questions":[{"question":"q","options":[{"label":"a"}]}]}`, `{"questions":[{"question":"r","options":[]}]}`, `{"question":"r"}`},
		{"ExitPlanMode", hooks.Call{Name: "submit_plan", Args: json.RawMessage(`{"plan":"p"}`)}, "ExitPlanMode", `{"plan":"p"}`, "", ""},
		{"mcp__git__.*", hooks.Call{Name: "git__push", Server: "git", Tool: "push", Args: json.RawMessage(`{"a":1}`)}, "mcp__git__push", `{"a":1}`, `{"a":2}`, `{"a":2}`},
		{"WebFetch", hooks.Call{Name: "web_fetch", Args: json.RawMessage(`{"url":"https://example.com"}`)}, "WebFetch", `{"url":"https://example.com"}`, `{"url":"https://example.org","prompt":"p"}`, `{"url":"https://example.org"}`},
	}
	for _, tt := range tests {
		t.Run(tt.matcher+" "+tt.call.Name, func(t *testing.T) {
			t.Parallel()
			p := place(t)
			answer := "cat >in.json"
			if tt.answer != "" {
				answer += `; echo '{"hookSpecificOutput":{"updatedInput":` + tt.answer + `}}'`
			}
			e := engine(t, hooks.Options{}, hooks.Source{}, `{"hooks": {"PreToolUse": [{"matcher": "`+tt.matcher+`", "hooks": [`+command(answer)+`]}]}}`)
			out := e.Run(t.Context(), p, hooks.Input{Event: hooks.PreToolUse}, &tt.call, nil)
			if tt.name == "" {
				if len(out.Results) > 0 {
					t.Errorf("the hook ran")
				}
				return
			}
			var in struct {
				Name  string          `json:"tool_name"`
				Input json.RawMessage `json:"tool_input"`
			}
			data, _ := os.ReadFile(filepath.Join(p.Session.Dir, "in.json"))
			_ = json.Unmarshal(data, &in)
			if in.Name != tt.name || string(in.Input) != tt.input {
				t.Errorf("input = %s %s, want %s %s", in.Name, in.Input, tt.name, tt.input)
			}
			if string(out.Input) != tt.back {
				t.Errorf("changed arguments = %s, want %s", out.Input, tt.back)
			}
		})
	}
}

// TestGemini runs a hook of Gemini CLI.
func TestGemini(t *testing.T) {
	t.Parallel()
	p := place(t)
	e := engine(t, hooks.Options{}, hooks.Source{}, `{"hooks": {"BeforeTool": [{"matcher": "run_shell_command", "hooks": [
		{"type": "command", "name": "fix", "timeout": 20000, "command": "cat >in.json; echo '{\"hookSpecificOutput\":{\"tool_input\":{\"command\":\"ls -l\"}}}'"}]}]}}`)
	call := bash("ls")
	call.Args = json.RawMessage(`{"command":"ls","description":"d"}`)
	out := e.Run(t.Context(), p, hooks.Input{Event: hooks.PreToolUse}, call, nil)
	if got, want := string(out.Input), `{"command":"ls -l","description":"d"}`; got != want {
		t.Errorf("changed arguments = %s, want %s (it names only what changes)", got, want)
	}
	data, _ := os.ReadFile(filepath.Join(p.Session.Dir, "in.json"))
	for _, want := range []string{`"hook_event_name":"BeforeTool"`, `"tool_name":"run_shell_command"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("input = %s, want %s", data, want)
		}
	}
}

// TestIdenticalOnce runs identical hooks of two sources once.
func TestIdenticalOnce(t *testing.T) {
	t.Parallel()
	p := place(t)
	hook := `{"hooks": {"Stop": [{"hooks": [` + command("echo x >>ran") + `]}]}}`
	one, _, _ := hooks.Parse(hooks.Source{Name: "user settings"}, []byte(hook))
	two, _, _ := hooks.Parse(hooks.Source{Name: "project settings"}, []byte(hook))
	out := hooks.New(hooks.Options{Hooks: append(one, two...)}).Run(t.Context(), p, hooks.Input{Event: hooks.Stop}, nil, nil)
	if data, _ := os.ReadFile(filepath.Join(p.Session.Dir, "ran")); string(data) != "x\n" || len(out.Results) != 1 {
		t.Errorf("it ran %q times, want once", data)
	}
}

// TestServer is a hook that is a server on this machine.
func TestServer(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/guard", http.StatusFound)
		case "/guard":
			got = r.Header.Get("Authorization")
			fmt.Fprint(w, `{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"server"}}`)
		}
	}))
	t.Cleanup(server.Close)
	getenv := func(name string) string { return "value of " + name }
	run := func(path string) hooks.Outcome {
		return engine(t, hooks.Options{Getenv: getenv}, hooks.Source{}, preToolUse(`{"type": "http", "url": "`+server.URL+path+`", "allowedEnvVars": ["TOKEN"], "headers": {"Authorization": "Bearer ${TOKEN}${HOME}"}}`)).
			Run(t.Context(), place(t), hooks.Input{Event: hooks.PreToolUse}, bash("ls"), nil)
	}
	if out := run("/guard"); out.Reason != "server" || got != "Bearer value of TOKEN" {
		t.Errorf("reason = %q, header = %q; want what the server said, and only the allowed variable", out.Reason, got)
	}
	if out := run("/moved"); !out.Blocked() || !strings.Contains(out.Reason, "302") {
		t.Errorf("a redirect: %q, want a denial", out.Reason)
	}
	server.Close()
	if out := run("/guard"); !out.Blocked() {
		t.Error("a server that is gone lets the call through")
	}
}

// TestJudge asks a model, which can only deny or ask.
func TestJudge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		answer  string
		decided bool
		verdict core.Verdict
	}{
		{`{"ok": true}`, false, 0},
		{"```json\n" + `{"ok": false, "reason": "risky"}` + "\n```", true, core.Deny},
		{`{"ask": true, "reason": "unsure"}`, true, core.Ask},
		{`{"decision": "allow"}`, true, core.Deny},
		{`Sure, go ahead!`, true, core.Deny},
	}
	for _, tt := range tests {
		p := place(t)
		provider := coretest.Model(coretest.Say(tt.answer))
		p.Provider = provider
		out := engine(t, hooks.Options{}, hooks.Source{}, preToolUse(`{"type": "prompt", "prompt": "Nothing with rm: $ARGUMENTS"}`)).
			Run(t.Context(), p, hooks.Input{Event: hooks.PreToolUse}, bash("rm x"), nil)
		if out.Decided != tt.decided || out.Verdict != tt.verdict {
			t.Errorf("%s: decided = %v, %v (%s); want %v, %v", tt.answer, out.Decided, out.Verdict, out.Reason, tt.decided, tt.verdict)
		}
		if asked := provider.Requests()[0].Messages[0].Parts.Text(); !strings.Contains(asked, `"command":"rm x"`) {
			t.Errorf("the model was asked %q, want the call in it", asked)
		}
	}
}

// TestTool is a hook that is a tool, with a part of the input.
func TestTool(t *testing.T) {
	t.Parallel()
	var got string
	call := func(_ context.Context, kind hooks.Kind, server, tool string, args json.RawMessage, _ core.SessionInfo) (string, error) {
		got = fmt.Sprintf("%s %s %s %s", kind, server, tool, args)
		return `{"decision": "block", "reason": "tool"}`, nil
	}
	out := engine(t, hooks.Options{CallTool: call}, hooks.Source{}, preToolUse(`{"type": "mcp_tool", "server": "lint", "tool": "check", "input": {"line": "${tool_input.command}", "all": "run: ${tool_input.command}", "in": "${tool_input}"}}`)).
		Run(t.Context(), place(t), hooks.Input{Event: hooks.PreToolUse}, bash("ls ${x}"), nil)
	if want := `mcp_tool lint check {"all":"run: ls ${x}","in":{"command":"ls ${x}"},"line":"ls ${x}"}`; got != want || out.Reason != "tool" {
		t.Errorf("called %s (%s), want %s", got, out.Reason, want)
	}
}

// TestEndsWithContext ends hooks with the work.
func TestEndsWithContext(t *testing.T) {
	t.Parallel()
	p := place(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	out := engine(t, hooks.Options{}, hooks.Source{}, preToolUse(command("sleep 300"))).Run(ctx, p, hooks.Input{Event: hooks.PreToolUse}, bash("ls"), nil)
	if !out.Blocked() || time.Since(start) > time.Minute {
		t.Errorf("blocked = %v after %s, want a denial at once", out.Blocked(), time.Since(start))
	}
}

// TestCode: a hook that is code is found when its event comes, and fails closed.
func TestCode(t *testing.T) {
	var defs []hooks.Definition
	e := hooks.New(hooks.Options{Later: []hooks.Event{hooks.PreToolUse}, More: func(context.Context, hooks.Event) []hooks.Definition { return defs }})
	if !e.Has(hooks.PreToolUse) || e.Has(hooks.Stop) {
		t.Error("Has does not know the later events")
	}
	p, in, c := place(t), hooks.Input{Event: hooks.PreToolUse}, hooks.Call{Name: "shell", Args: json.RawMessage(`{}`)}
	if out := e.Run(t.Context(), p, in, &c, nil); out.Decided {
		t.Errorf("without hooks: %+v", out)
	}
	says := func(name, matcher, answer string, err error) {
		defs = append(defs, hooks.Define(hooks.Source{Name: "plugin x"}, hooks.PreToolUse, matcher, hooks.Handler{Server: "x", Tool: name},
			func(_ context.Context, _ core.SessionInfo, input json.RawMessage) (json.RawMessage, error) {
				if !strings.Contains(string(input), `"tool_name":"Bash"`) {
					t.Errorf("input: %s", input)
				}
				return json.RawMessage(answer), err
			}))
	}
	says("other", "Write", `{"hookSpecificOutput":{"permissionDecision":"deny"}}`, nil)
	says("asks", "Bash", `{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"sure?"}}`, nil)
	if out := e.Run(t.Context(), p, in, &c, nil); out.Verdict != core.Ask || out.Reason != "sure?" || len(out.Results) != 1 {
		t.Errorf("%+v", out)
	}
	says("fails", "", "", fmt.Errorf("it crashed"))
	if out := e.Run(t.Context(), p, in, &c, nil); !out.Blocked() || out.Reason != `the hook "plugin x/fails" failed: it crashed` {
		t.Errorf("%+v", out)
	}
	defs = nil
	says("broken", "(", "", nil)
	if out := e.Run(t.Context(), p, in, &c, nil); !out.Blocked() {
		t.Errorf("a broken matcher: %+v", out)
	}
}
