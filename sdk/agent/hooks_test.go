package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// configured adds the hooks of a file: EVENT, matcher and script, each.
func configured(t *testing.T, each ...[3]string) func(*agent.Options) {
	t.Helper()
	needShell(t)
	events := map[string][]any{}
	for _, h := range each {
		handler := map[string]any{"type": "command", "command": h[2], "timeout": 20}
		events[h[0]] = append(events[h[0]], map[string]any{"matcher": h[1], "hooks": []any{handler}})
	}
	data, err := json.Marshal(map[string]any{"hooks": events})
	if err != nil {
		t.Fatal(err)
	}
	defs, problems, err := hooks.Parse(hooks.Source{Name: "test"}, data)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return func(o *agent.Options) { o.Hooks, o.Permissions.Mode = defs, permissions.ModeDefault }
}

// submit runs an input in a new session and returns what came of it.
func submit(t *testing.T, a *agent.Agent, o agent.SessionOptions, turns ...coretest.Turn) (core.Outcome, *coretest.FakeProvider, []event.Event, error) {
	t.Helper()
	provider := coretest.Model(turns...)
	o.Provider = provider
	s, err := a.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	events := coretest.Collect(t, s, nil)
	out, err := s.Submit(t.Context(), core.TextInput("go"))
	if closed := s.Close(); closed != nil {
		t.Fatal(closed)
	}
	return out, provider, events.Drain(t), err
}

func shellCall(line string) coretest.Turn {
	args, _ := json.Marshal(args{"command": line})
	return coretest.CallTools(model.ToolCall{ID: "c1", Name: "shell", Args: string(args)})
}

func lastText(p *coretest.FakeProvider) string {
	requests := p.Requests()
	messages := requests[len(requests)-1].Messages
	text := ""
	for _, part := range messages[len(messages)-1].Parts {
		if r, ok := part.(model.ToolResult); ok {
			text += model.Parts(r.Content).Text()
		}
	}
	return text + messages[len(messages)-1].Parts.Text()
}

func says(specific string) string {
	return `echo '{"hookSpecificOutput":{` + specific + `}}'`
}

func TestHookDenies(t *testing.T) {
	a, dir := open(t, configured(t, [3]string{"PreToolUse", "Bash", `grep -q '"command":"touch' && { echo not here >&2; exit 2; }; exit 0`}), nil)
	for _, name := range []string{"shell", "Shell", "functions.shell"} { // as some models spell it
		turn := shellCall("touch made")
		turn.Calls[0].Name = name
		_, p, events, err := submit(t, a, agent.SessionOptions{}, turn, coretest.Say("Done."))
		if err != nil {
			t.Fatal(err)
		}
		if text := lastText(p); !strings.Contains(text, "Permission denied") || !strings.Contains(text, "not here") {
			t.Errorf("%s: the model gets %q, want the hook's reason", name, text)
		}
		ran := coretest.Bodies[event.Hook](events)
		if len(ran) != 1 || ran[0].Decision != "deny" || ran[0].Reason != "not here" || ran[0].Tool != "shell" || ran[0].CallID != "c1" || *ran[0].ExitCode != 2 {
			t.Errorf("%s: hook events = %+v", name, ran)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("the command ran")
	}
}

// TestHookAllows shows what the approval of a hook is worth.
func TestHookAllows(t *testing.T) {
	allow := [3]string{"PreToolUse", "", says(`"permissionDecision":"allow"`)}
	ask := [3]string{"PreToolUse", "", says(`"permissionDecision":"ask","permissionDecisionReason":"look"`)}
	request := [3]string{"PermissionRequest", "", says(`"decision":{"behavior":"allow"}`)}
	refuse := [3]string{"PermissionRequest", "", says(`"decision":{"behavior":"deny","message":"never"}`)}
	rules := func(change func(*permissions.Settings)) func(*agent.Options) {
		return func(o *agent.Options) {
			set := permissions.RuleSet{Source: permissions.SourceUser}
			change(&set.Settings)
			o.Permissions.Sets = []permissions.RuleSet{set}
		}
	}
	tests := []struct {
		name   string
		hook   [3]string
		change func(*agent.Options)
		tool   string
		args   args
		ran    bool
		reason string
	}{
		{"what the mode asks", allow, nil, "write_file", args{"file_path": "a", "content": "x"}, true, ""},
		{"by a request", request, nil, "write_file", args{"file_path": "a", "content": "x"}, true, ""},
		{"not against a deny rule", allow, rules(func(s *permissions.Settings) { s.Deny = []string{"fs-write(*)"} }), "write_file", args{"file_path": "a", "content": "x"}, false, "denied"},
		{"not against an ask rule", allow, rules(func(s *permissions.Settings) { s.Ask = []string{"fs-write(*)"} }), "write_file", args{"file_path": "a", "content": "x"}, false, "needs approval"},
		{"no request against an ask rule", request, rules(func(s *permissions.Settings) { s.Ask = []string{"fs-write(*)"} }), "write_file", args{"file_path": "a", "content": "x"}, false, ""},
		{"not a secret", allow, nil, "read_file", args{"file_path": ".env"}, false, "secret"},
		{"no request for a secret", request, nil, "read_file", args{"file_path": ".env"}, false, ""},
		{"not what is protected", allow, nil, "write_file", args{"file_path": ".git/config", "content": "x"}, false, "protected"},
		{"asks about what is allowed", ask, nil, "read_file", args{"file_path": "b"}, false, "look"},
		{"denies a call that would ask", refuse, nil, "write_file", args{"file_path": "a", "content": "x"}, false, "never"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := configured(t, tt.hook)
			a, _ := open(t, func(o *agent.Options) {
				if set(o); tt.change != nil {
					tt.change(o)
				}
			}, map[string]string{".env": "KEY=1", "b": "x"})
			text, _ := json.Marshal(tt.args)
			_, p, events, err := submit(t, a, agent.SessionOptions{}, coretest.CallTools(model.ToolCall{ID: "c1", Name: tt.tool, Args: string(text)}), coretest.Say("Done."))
			if err != nil {
				t.Fatal(err)
			}
			res := coretest.Bodies[event.ToolResult](events)[0]
			if res.IsError == tt.ran || !strings.Contains(lastText(p), tt.reason) {
				t.Errorf("error = %v, %q; want it to run: %v, with %q", res.IsError, lastText(p), tt.ran, tt.reason)
			}
		})
	}
}

// TestHookChanges changes arguments, which are checked again.
func TestHookChanges(t *testing.T) {
	change := func(input string) [3]string {
		return [3]string{"PreToolUse", "Write", says(`"permissionDecision":"allow","updatedInput":` + input)}
	}
	write := coretest.CallTools(model.ToolCall{ID: "c1", Name: "write_file", Args: `{"file_path": "a", "content": "x"}`})
	a, dir := open(t, configured(t, change(`{"file_path": "b", "content": "changed"}`)), nil)
	_, _, events, _ := submit(t, a, agent.SessionOptions{}, write, coretest.Say("Done."))
	if data, _ := os.ReadFile(filepath.Join(dir, "b")); string(data) != "changed" {
		t.Errorf("b has %q, want what the hook made of it", data)
	}
	if use := coretest.Bodies[event.ToolUse](events)[0]; !strings.Contains(use.Args, "changed") {
		t.Errorf("the record has the arguments %s, want those that ran", use.Args)
	}
	for input, want := range map[string]string{`{"file_path": 7}`: "which are wrong", `{"file_path": ".git/config", "content": "x"}`: "is protected"} {
		a, _ := open(t, configured(t, change(input)), nil)
		_, p, _, _ := submit(t, a, agent.SessionOptions{}, write, coretest.Say("Done."))
		if text := lastText(p); !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", input, text, want)
		}
	}
}

func TestHooksAfterTools(t *testing.T) {
	a, dir := open(t, configured(t,
		[3]string{"PreToolUse", "Read", says(`"additionalContext":"before"`)},
		[3]string{"PostToolUse", "Read", `cat >post.json; ` + says(`"additionalContext":"noted","updatedToolOutput":"replaced"`)},
		[3]string{"PostToolUseFailure", "Read", `echo '{"decision":"block","reason":"try b"}'`},
		[3]string{"PermissionDenied", "", `echo denied >denied`},
	), map[string]string{"b": "content"})
	read := func(file string) coretest.Turn {
		return coretest.CallTools(model.ToolCall{ID: "c1", Name: "read_file", Args: `{"file_path": "` + file + `"}`})
	}
	_, p, _, _ := submit(t, a, agent.SessionOptions{}, read("b"), coretest.Say("Done."))
	if text := lastText(p); !strings.Contains(text, "replaced") || strings.Contains(text, "content") || !strings.Contains(text, "noted") || !strings.Contains(text, "before") {
		t.Errorf("the model gets %q", text)
	}
	data, _ := os.ReadFile(filepath.Join(dir, "post.json"))
	for _, want := range []string{`"tool_response":{"content":"`, `"filePath":"` + filepath.Join(dir, "b"), `"success":true`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the hook gets %s, want %s", data, want)
		}
	}
	if _, p, _, _ = submit(t, a, agent.SessionOptions{}, read("none"), coretest.Say("Done.")); !strings.Contains(lastText(p), "try b") {
		t.Errorf("after a failure the model gets %q", lastText(p))
	}
	submit(t, a, agent.SessionOptions{}, read("/etc/hosts"), coretest.Say("Done."))
	if _, err := os.Stat(filepath.Join(dir, "denied")); err != nil {
		t.Error("PermissionDenied did not run")
	}
}

func TestStopHook(t *testing.T) {
	a, dir := open(t, configured(t, [3]string{"Stop", "", `cat >>stops; test -e done || { echo write done >&2; exit 2; }`},
		[3]string{"PreToolUse", "Write", says(`"permissionDecision":"allow"`)}), nil)
	out, p, _, err := submit(t, a, agent.SessionOptions{},
		coretest.Say("I am done."), writeCall("done"), coretest.Say("Now I am."))
	if err != nil || out.Text != "Now I am." || out.Stop != core.StopDone {
		t.Fatalf("%+v, %v", out, err)
	}
	if text := p.Requests()[1].Messages[2].Parts.Text(); !strings.Contains(text, "write done") {
		t.Errorf("the model is told %q", text)
	}
	data, _ := os.ReadFile(filepath.Join(dir, "stops"))
	if lines := strings.Split(strings.TrimSpace(string(data)), "\n"); len(lines) != 2 || !strings.Contains(lines[0], `"stop_hook_active":false`) || !strings.Contains(lines[1], `"stop_hook_active":true,"last_assistant_message":"Now I am."`) {
		t.Errorf("the hook got %s", data)
	}
}

func writeCall(name string) coretest.Turn {
	return coretest.CallTools(model.ToolCall{ID: "c1", Name: "write_file", Args: `{"file_path": "` + name + `", "content": "x"}`})
}

func TestStopHookIsNotHeardForever(t *testing.T) {
	a, _ := open(t, configured(t, [3]string{"Stop", "", "exit 2"}), nil)
	var turns []coretest.Turn
	for i := range 20 {
		turns = append(turns, coretest.Say(fmt.Sprint("answer ", i+1)))
	}
	out, _, events, err := submit(t, a, agent.SessionOptions{}, turns...)
	if err != nil || out.Text != "answer 9" {
		t.Errorf("the last answer is %q (%v), want the ninth, after 8 continuations", out.Text, err)
	}
	if n := len(coretest.Bodies[event.Hook](events)); n != 9 {
		t.Errorf("the hook ran %d times", n)
	}
}

func TestHooksOfInputs(t *testing.T) {
	a, _ := open(t, configured(t,
		[3]string{"SessionStart", "startup", "echo the branch is main"},
		[3]string{"UserPromptSubmit", "", `grep -q '"prompt":"go"' && echo ticket 7`},
	), nil)
	_, p, _, _ := submit(t, a, agent.SessionOptions{}, coretest.Say("Done."))
	if text := p.Requests()[0].Messages[0].Parts.Text(); !strings.Contains(text, "the branch is main") || !strings.Contains(text, "ticket 7") {
		t.Errorf("the model gets %q", text)
	}
	a, _ = open(t, configured(t, [3]string{"UserPromptSubmit", "", "echo contains a key >&2; exit 2"}), nil)
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: coretest.Model(coretest.Say("Done."))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var blocked *hooks.BlockedError
	if _, err := s.Submit(t.Context(), core.TextInput("go")); !errors.As(err, &blocked) || blocked.Reason != "contains a key" {
		t.Errorf("error = %v, want the hook's", err)
	}
	if n := len(s.Messages()); n != 0 || s.State() != core.StateIdle {
		t.Errorf("the conversation has %d messages, and the session is %s; want none of the refused input", n, s.State())
	}
}

// twoModels answers a session and its subagents.
type twoModels struct{ root, child model.Provider }

func (p twoModels) Info() model.ProviderInfo { return p.root.Info() }

func (p twoModels) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	if strings.Contains(req.System, "Another agent gave you this task") {
		return p.child.Stream(ctx, req)
	}
	return p.root.Stream(ctx, req)
}

// TestHooksOfSubagents runs guards and SubagentStop hooks in a subagent.
func TestHooksOfSubagents(t *testing.T) {
	a, dir := open(t, configured(t,
		[3]string{"PreToolUse", "Write", `cat >guard.json; exit 2`},
		[3]string{"PreToolUse", "Agent", says(`"permissionDecision":"allow"`)},
		[3]string{"SubagentStart", "default", "echo be brief"},
		[3]string{"SubagentStop", "", "cat >stop.json"},
		[3]string{"Stop", "", "cat >root.json"},
	), nil)
	child := coretest.Model(writeCall("x"), coretest.Say("Report."))
	root := coretest.Model(
		coretest.CallTools(model.ToolCall{ID: "s1", Name: "spawn_agent", Args: `{"task": "write it"}`}),
		coretest.CallTools(model.ToolCall{ID: "w1", Name: "wait", Args: `{"agent_id": "agent-1"}`}), coretest.Say("Done."))
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: twoModels{root, child}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), core.TextInput("go")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text := child.Requests()[0].Messages[0].Parts.Text(); !strings.Contains(text, "be brief") {
		t.Errorf("the subagent gets %q", text)
	}
	for file, wants := range map[string][]string{
		"guard.json": {`"agent_type":"default"`, `"tool_name":"Write"`},
		"stop.json":  {`"hook_event_name":"SubagentStop"`, `"last_assistant_message":"Report."`},
		"root.json":  {`"hook_event_name":"Stop"`, `"last_assistant_message":"Done."`},
	} {
		data, _ := os.ReadFile(filepath.Join(dir, file))
		for _, want := range wants {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s has %s, want %s", file, data, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("the subagent wrote the file")
	}
}

// TestGuardsSideBySide has sessions, their subagents and a task make calls at the same
// time, while the guard stalls, crashes, prints rubbish or fails: none gets through.
func TestGuardsSideBySide(t *testing.T) {
	guard := `case $(($(wc -c <counter) % 4)) in 0) kill -9 $$;; 1) echo rubbish;; 2) exit 7;; *) sleep 60;; esac`
	hook := map[string]any{"matcher": "Write", "hooks": []any{map[string]any{"type": "command", "command": "printf x >>counter; " + guard, "timeout": 0.5}}}
	data, err := json.Marshal(map[string]any{"PreToolUse": []any{hook}})
	if err != nil {
		t.Fatal(err)
	}
	defs, _, err := hooks.Parse(hooks.Source{Name: "test"}, data)
	if err != nil {
		t.Fatal(err)
	}
	needShell(t)
	a, dir := open(t, func(o *agent.Options) { o.Hooks = defs }, taskFiles())
	calls := func(name string) (turns []coretest.Turn) {
		for i := range 4 {
			turns = append(turns, writeCall(fmt.Sprintf("through-%s-%d", name, i)))
		}
		return append(turns, coretest.Say("Done."))
	}
	var all sync.WaitGroup
	run := func(o agent.SessionOptions) {
		s, err := a.NewSession(t.Context(), o)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := s.Submit(t.Context(), core.TextInput("go")); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for i := range 4 {
		all.Go(func() { run(agent.SessionOptions{Provider: coretest.Model(calls(fmt.Sprint("exec", i))...)}) })
	}
	root := coretest.Model(
		coretest.CallTools(model.ToolCall{ID: "s1", Name: "spawn_agent", Args: `{"task": "write it"}`}),
		coretest.CallTools(model.ToolCall{ID: "w1", Name: "wait", Args: `{"agent_id": "agent-1"}`}), coretest.Say("Done."))
	all.Go(func() { run(agent.SessionOptions{Provider: twoModels{root, coretest.Model(calls("sub")...)}}) })
	all.Go(func() {
		task, err := a.StartTask(t.Context(), newTask(dir, func(s *event.TaskStart) { s.MaxBeads = 1 }), agent.TaskOptions{Session: agent.SessionOptions{Provider: coretest.Model(calls("task")...)}})
		if err != nil {
			t.Error(err)
			return
		}
		defer task.Close()
		if _, err := task.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	if through, _ := filepath.Glob(filepath.Join(dir, "through-*")); len(through) > 0 {
		t.Errorf("calls got through: %v", through)
	}
	if ran, _ := os.ReadFile(filepath.Join(dir, "counter")); len(ran) == 0 { // a guard that has no time to begin denies, too
		t.Error("the guard never ran")
	}
}

// TestHookIf runs a hook only for calls that a rule matches.
func TestHookIf(t *testing.T) {
	needShell(t)
	for rule, lines := range map[string]map[string]bool{
		"Bash(git push *)": {"git push origin": true, "cd . && git push -f": true, "git status": false, "ls": false},
		"Bash(git:*)":      {"git status": true, "ls": false},
		"shell(rm *)":      {"rm x": true, "ls": false},
		"Bash(":            {"ls": true}, // if in doubt, it runs
	} {
		defs, _, err := hooks.Parse(hooks.Source{Name: "test"}, []byte(`{"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2", "if": "`+rule+`"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		a, _ := open(t, func(o *agent.Options) { o.Hooks = defs }, nil)
		for line, want := range lines {
			_, _, events, _ := submit(t, a, agent.SessionOptions{}, shellCall(line), coretest.Say("Done."))
			if got := len(coretest.Bodies[event.Hook](events)) == 1; got != want {
				t.Errorf("%s ran for %q: %v, want %v", rule, line, got, want)
			}
		}
	}
}

// TestTranscript reads the transcript of a session as hooks of others do.
func TestTranscript(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	// As many Stop hooks: what the model said last.
	last := `jq -r .transcript_path >path; cat "$(cat path)" >copy; grep '"role":"assistant"' "$(cat path)" | jq -rs 'map(.message.content[]? | select(.type == "text") | .text) | last' >>said`
	a, dir := open(t, configured(t, [3]string{"Stop", "", last + `; test $(wc -l <said) -gt 1 || { echo more >&2; exit 2; }`},
		[3]string{"PreToolUse", "Write", says(`"permissionDecision":"allow"`)}, [3]string{"SessionStart", "", `jq -r .transcript_path | xargs cat >first`}), nil)
	if _, _, _, err := submit(t, a, agent.SessionOptions{}, writeCall("made"), coretest.Say("First."), coretest.Say("Second.")); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if said := read("said"); said != "First.\nSecond.\n" {
		t.Errorf("the last answers are %q %s", said, read("path"))
	}
	var got []string
	parent := ""
	for text := range strings.Lines(read("copy")) {
		var l struct {
			Type, UUID, SessionID string
			ParentUUID            string
			Message               struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil || l.ParentUUID != parent || l.UUID == "" || l.SessionID == "" {
			t.Errorf("%s: %v", text, err)
		}
		parent = l.UUID
		got = append(got, l.Type+" "+string(l.Message.Content))
	}
	want := []string{`user "go"`, `"name":"Write"`, `"tool_use_id":"c1","type":"tool_result"`, `"text":"First."`, `more`, `"text":"Second."`}
	if len(got) != len(want) {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("line %d is %s, want %s", i+1, got[i], want[i])
		}
	}
	if _, err := os.Stat(strings.TrimSpace(read("path"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the transcript is left behind: %v", err)
	}
}
