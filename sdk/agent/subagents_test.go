package agent_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// byRequest is a model whose answer depends on the request.
type byRequest func(req *model.Request) coretest.Turn

func (b byRequest) Info() model.ProviderInfo { return model.ProviderInfo{Name: "test", Model: "m"} }
func (b byRequest) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return coretest.Model(b(req)).Stream(ctx, req)
}

// isChild distinguishes a subagent's request from its parent's.
func isChild(req *model.Request) bool {
	return strings.Contains(req.System, "Another agent gave you this task")
}

// last is the text of the last message, including results.
func last(req *model.Request) string {
	var out []string
	for _, p := range req.Messages[len(req.Messages)-1].Parts {
		switch p := p.(type) {
		case model.Text:
			out = append(out, p.Text)
		case model.ToolResult:
			out = append(out, p.Content.Text())
		}
	}
	return strings.Join(out, "\n")
}

func toolNames(req *model.Request) []string {
	var names []string
	for _, d := range req.Tools {
		names = append(names, d.Name)
	}
	return names
}

func spawn(task string, more string) model.ToolCall {
	return model.ToolCall{Name: "spawn_agent", Args: fmt.Sprintf(`{"task":%q%s}`, task, more)}
}

func on(tool, id, more string) model.ToolCall {
	return model.ToolCall{Name: tool, Args: fmt.Sprintf(`{"agent_id":%q%s}`, id, more)}
}

// talk submits an input to a new session and returns the outcome and the
// session.
func talk(t *testing.T, a *agent.Agent, opts agent.SessionOptions) (core.Outcome, *agent.Session) {
	t.Helper()
	s, err := a.NewSession(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	out, err := s.Submit(t.Context(), core.TextInput("go"))
	if err != nil {
		t.Fatal(err)
	}
	return out, s
}

// TestSubagents: several run concurrently on the same files, with their own
// history and up to the maximum depth; their reports are results.
func TestSubagents(t *testing.T) {
	a, _ := open(t, nil, map[string]string{"a.txt": "alpha\n"})
	var mu sync.Mutex
	var children []*core.Session
	out, s := talk(t, a, agent.SessionOptions{
		OnSubagent: func(c *core.Session) {
			mu.Lock()
			defer mu.Unlock()
			children = append(children, c)
		},
		Provider: byRequest(func(req *model.Request) coretest.Turn {
			text := last(req)
			switch {
			case isChild(req) && text == "read the file":
				if slices.Contains(toolNames(req), "spawn_agent") || len(req.Messages) != 1 {
					return coretest.Say(fmt.Sprintf("tools %q, %d messages", toolNames(req), len(req.Messages)))
				}
				return coretest.CallTools(model.ToolCall{Name: "read_file", Args: `{"file_path":"a.txt"}`})
			case isChild(req) && strings.Contains(text, "alpha"):
				return coretest.Say("It says alpha.")
			case isChild(req) && text == "go deeper":
				return coretest.CallTools(spawn("deeper still", ""))
			case isChild(req):
				return coretest.Say("Deeper: " + text)
			case text == "go":
				return coretest.CallTools(spawn("read the file", ""), spawn("go deeper", ""))
			case strings.Contains(text, "is running"):
				return coretest.CallTools(on("wait", "agent-1", ""), on("wait", "agent-2", ""))
			}
			return coretest.Say(text)
		}),
	})
	for _, want := range []string{"Agent agent-1 is done (2 turns). It reports:\n\nIt says alpha.", "Agent agent-2 is done", "Unknown tool: spawn_agent"} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("no %q in the results:\n%s", want, out.Text)
		}
	}
	if len(children) != 2 {
		t.Fatalf("%d subagents", len(children))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		events := coretest.Collect(t, c, nil).Drain(t)
		if c.ID() == s.ID() || len(coretest.Bodies[event.SessionStart](events)) != 1 || events[0].Parent != s.ID() || c.State() != core.StateClosed {
			t.Errorf("subagent %s of %q is %s", c.ID(), events[0].Parent, c.State())
		}
	}
}

// TestSubagentGoesOn: a message to a subagent that is done, and to one that is closed.
func TestSubagentGoesOn(t *testing.T) {
	a, _ := open(t, nil, nil)
	out, _ := talk(t, a, agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
		text := last(req)
		switch {
		case isChild(req):
			return coretest.Say(fmt.Sprintf("heard %q after %d messages", text, len(req.Messages)-1))
		case text == "go":
			return coretest.CallTools(spawn("one", ""))
		case strings.Contains(text, "agent-1 is running. "):
			return coretest.CallTools(on("wait", "agent-1", ""), on("send_input", "agent-1", `,"message":"two"`), on("wait", "agent-1", ""),
				on("close_agent", "agent-1", ""), on("wait", "agent-1", ""), on("send_input", "agent-9", `,"message":"x"`), spawn(" ", ""), spawn("x", `,"agent":"nobody"`), spawn("x", `,"working_dir":"../.."`))
		}
		return coretest.Say(text)
	})})
	for _, want := range []string{
		`heard "one" after 0 messages`, `heard "two" after 2 messages`, "Agent agent-1 is closed; it was completed.", `There is no agent "agent-1". Agents: none`,
		`There is no agent "agent-9"`, "task is empty", `there is no agent type "nobody"`, "is not a subdirectory",
	} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("no %q in the results:\n%s", want, out.Text)
		}
	}
}

// TestSubagentDirectory: the directory of a subagent is its whole workspace, for its
// file tools, its commands, the policy and the sandbox.
func TestSubagentDirectory(t *testing.T) {
	needShell(t)
	a, dir := open(t, func(o *agent.Options) { o.Permissions.Mode = permissions.ModeWorkspace }, map[string]string{"sub/a.txt": "inner\n", "a.txt": "outer\n"})
	write := func(path string) model.ToolCall {
		return model.ToolCall{Name: "write_file", Args: fmt.Sprintf(`{"file_path":%q,"content":"x"}`, path)}
	}
	shell := func(line string) model.ToolCall {
		return model.ToolCall{Name: "shell", Args: fmt.Sprintf(`{"command":%q}`, line)}
	}
	steps := []struct {
		call model.ToolCall
		want string // in the result
	}{
		{model.ToolCall{Name: "read_file", Args: `{"file_path":"a.txt"}`}, "inner"},
		{write("new.txt"), "Created"},
		{write("../out.txt"), "Permission denied"},
		{write(filepath.Join(dir, "out.txt")), "Permission denied"},
		{shell("pwd"), filepath.Join(dir, "sub")},
		{shell("echo x > made.txt"), ""},
		{shell("echo x > ../out.txt"), ""},
	}
	var got []string
	talk(t, a, agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
		text := last(req)
		switch {
		case !isChild(req) && text == "go":
			return coretest.CallTools(spawn("work", `,"working_dir":"sub"`))
		case !isChild(req) && strings.Contains(text, "is running. "):
			return coretest.CallTools(on("wait", "agent-1", ""))
		case !isChild(req):
			return coretest.Say("done")
		}
		if n := (len(req.Messages) - 1) / 2; n < len(steps) {
			if n > 0 {
				got = append(got, text)
			}
			return coretest.CallTools(steps[n].call)
		}
		got = append(got, text)
		return coretest.Say("done")
	})})
	for i, s := range steps {
		if !strings.Contains(got[i], s.want) {
			t.Errorf("%s: %q, want %q", s.call.Args, got[i], s.want)
		}
	}
	for path, want := range map[string]bool{"sub/new.txt": true, "out.txt": false} {
		if _, err := os.Stat(filepath.Join(dir, path)); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if p, ok := a.Policy().(*permissions.Policy); ok && p.Sandboxed() {
		if _, err := os.Stat(filepath.Join(dir, "sub", "made.txt")); err != nil {
			t.Errorf("a command cannot write in its workspace: %v", err)
		}
	}
}

// TestBackgroundSubagent: the parent may end its turn, and is told when the subagent
// is done.
func TestBackgroundSubagent(t *testing.T) {
	a, _ := open(t, nil, nil)
	hold := make(chan struct{})
	_, s := talk(t, a, agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
		text := last(req)
		switch {
		case isChild(req):
			return coretest.Turn{Text: "the report", Block: hold}
		case text == "go":
			return coretest.CallTools(spawn("one", `,"background":true`), spawn("two", ""))
		case strings.Contains(text, "agent-1 is done (completed)"):
			return coretest.CallTools(on("wait", "agent-1", ""))
		case strings.Contains(text, "It reports"):
			return coretest.Say(text)
		}
		return coretest.Say("meanwhile")
	})})
	close(hold)
	if !s.AwaitBackground(t.Context()) {
		t.Fatal("there is no notice")
	}
	out, err := s.Submit(t.Context(), core.Input{})
	if err != nil || !strings.Contains(out.Text, "the report") {
		t.Errorf("%+v, %v", out, err)
	}
	if s.AwaitBackground(t.Context()) {
		t.Error("the other subagent left a notice, too")
	}
}

// TestSubagentPolicy: a subagent may not do what its parent may not; permission
// requests go to the parent's asker and name the subagent.
func TestSubagentPolicy(t *testing.T) {
	var asked core.Question
	answer := core.ChoiceDeny
	a, dir := open(t, func(o *agent.Options) { o.Permissions.Mode = permissions.ModeDefault }, nil)
	run := func() string {
		out, _ := talk(t, a, agent.SessionOptions{
			Asker: askerFunc(func(q core.Question) core.Answer {
				asked = q
				return core.Answer{Choice: answer}
			}),
			Provider: byRequest(func(req *model.Request) coretest.Turn {
				text := last(req)
				switch {
				case isChild(req) && text == "write":
					return coretest.CallTools(model.ToolCall{Name: "write_file", Args: `{"file_path":"new.txt","content":"x"}`})
				case !isChild(req) && text == "go":
					return coretest.CallTools(spawn("write", ""))
				case !isChild(req) && strings.Contains(text, " is running"):
					id, _, _ := strings.Cut(strings.TrimPrefix(text, "Agent "), " ")
					return coretest.CallTools(on("wait", id, ""))
				}
				return coretest.Say(text)
			}),
		})
		return out.Text
	}
	if text := run(); !strings.Contains(text, "Permission denied") {
		t.Errorf("the subagent wrote: %s", text)
	}
	if len(asked.AgentPath) != 1 || asked.AgentPath[0] != "agent-1" || !strings.Contains(asked.Title, dir+"/new.txt") && !strings.Contains(asked.Title, "new.txt") {
		t.Errorf("asked %+v", asked)
	}
	answer = core.ChoiceOnce
	if text := run(); !strings.Contains(text, "Created new.txt") {
		t.Errorf("the subagent did not write: %s", text)
	}
}

type askerFunc func(core.Question) core.Answer

func (f askerFunc) Ask(_ context.Context, q core.Question) (core.Answer, error) { return f(q), nil }

// TestSubagentDefinition: tools, model and prompt of an agent type.
func TestSubagentDefinition(t *testing.T) {
	files := fstest.MapFS{
		"agents/reviewer.md": {Data: []byte("---\nname: reviewer\ndescription: looks for faults\ntools: read_file, grep\nmodel: small\n---\nYou are strict.\n")},
		"agents/broken.md":   {Data: []byte("---\nname: broken\n---\nx")},
		"agents/note.txt":    {Data: []byte("not one")},
	}
	defs, errs := subagent.Load(files, "agents")
	if len(defs) != 1 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "agents/broken.md: description is missing") {
		t.Fatalf("%+v, %v", defs, errs)
	}
	a, _ := open(t, func(o *agent.Options) { o.Agents = defs }, nil)
	out, _ := talk(t, a, agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
		switch text := last(req); {
		case isChild(req):
			return coretest.Say(fmt.Sprintf("%s %q %v", req.Model, toolNames(req), strings.Contains(req.System, "You are strict.")))
		case text == "go":
			if i := slices.Index(toolNames(req), "spawn_agent"); !strings.Contains(req.Tools[i].Description, "- reviewer: looks for faults") {
				return coretest.Say(req.Tools[i].Description)
			}
			return coretest.CallTools(spawn("review", `,"agent":"reviewer"`))
		case strings.Contains(text, " is running"):
			return coretest.CallTools(on("wait", "agent-1", ""))
		default:
			return coretest.Say(text)
		}
	})})
	if !strings.Contains(out.Text, `small ["read_file" "grep"] true`) {
		t.Errorf("the results: %s", out.Text)
	}
}

// TestSubagentBudget: a subagent has only the remaining tokens, and its cost
// counts against its parent's limit.
func TestSubagentBudget(t *testing.T) {
	a, _ := open(t, nil, nil)
	provider := byRequest(func(req *model.Request) coretest.Turn {
		turn := coretest.Say("child " + last(req))
		switch text := last(req); {
		case isChild(req):
		case text == "go":
			turn = coretest.CallTools(spawn("work", ""))
		case strings.Contains(text, " is running"):
			turn = coretest.CallTools(on("wait", "agent-1", ""))
		case strings.Contains(text, "It reports"):
			turn = coretest.CallTools(model.ToolCall{Name: "list_dir", Args: "{}"})
		default:
			turn = coretest.Say("end: " + text)
		}
		turn.Usage = model.Usage{Input: 100, Output: 10}
		return turn
	})
	out, _ := talk(t, a, agent.SessionOptions{Provider: provider, Limits: core.Limits{MaxSessionTokens: 100_000}})
	if !strings.Contains(out.Text, "end:") || out.Stop != core.StopDone {
		t.Errorf("%s: %s", out.Stop, out.Text)
	}
	dollar := func(string, string, model.Usage) (float64, bool) { return 1, true }
	b, _ := open(t, nil, nil)
	s, err := b.NewSession(t.Context(), agent.SessionOptions{Provider: provider, Cost: dollar, Limits: core.Limits{MaxCost: 4}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if out, err := s.Submit(t.Context(), core.TextInput("go")); err != nil || out.Stop != core.StopTokenLimit || out.Cost != 4 {
		t.Errorf("%s after %v USD, %v", out.Stop, out.Cost, err)
	}
}

// TestSubagentsShareTokens: tokens that one session of a tree uses are not
// available to the others, even if these are running.
func TestSubagentsShareTokens(t *testing.T) {
	a, _ := open(t, nil, nil)
	const most, call = 20_000, 2_000
	var used atomic.Int64 // by the subagents
	s, err := a.NewSession(t.Context(), agent.SessionOptions{
		Limits: core.Limits{MaxSessionTokens: most},
		Provider: byRequest(func(req *model.Request) coretest.Turn {
			switch text := last(req); {
			case isChild(req):
				turn := coretest.CallTools(model.ToolCall{Name: "list_dir", Args: fmt.Sprintf(`{"depth":%d}`, 1+used.Add(call)%3)})
				turn.Usage = model.Usage{Input: call}
				return turn
			case text == "go":
				return coretest.CallTools(spawn("one", ""), spawn("two", ""), spawn("three", ""))
			case strings.Contains(text, " is running"):
				return coretest.CallTools(on("wait", "agent-1", ""), on("wait", "agent-2", ""), on("wait", "agent-3", ""))
			}
			return coretest.Say("the parent goes on")
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if out, err := s.Submit(t.Context(), core.TextInput("go")); err != nil {
		t.Errorf("%s: %v", out.Stop, err)
	}
	// Each may have been in a call when the last tokens were used.
	if n := used.Load(); n < most/2 || n > most+3*call {
		t.Errorf("three subagents used %d of %d tokens", n, most)
	}
}

// TestSubagentRecord: the parent's log has the start and end of a subagent, whose
// own log is deleted with its parent's.
func TestSubagentRecord(t *testing.T) {
	home := t.TempDir()
	a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Home: home})
	if err != nil {
		t.Fatal(err)
	}
	_, s := talk(t, a, agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
		switch text := last(req); {
		case isChild(req):
			return coretest.Say("the report")
		case text == "go":
			return coretest.CallTools(spawn("look into it", ""))
		case strings.Contains(text, " is running"):
			return coretest.CallTools(on("wait", "agent-1", ""))
		}
		return coretest.Say("done")
	})})
	var got []string
	var child string
	closed := s.Close()
	for e, err := range s.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.SubagentStart:
			child = b.Child
			got = append(got, "start "+b.Name+": "+b.Input)
		case event.SubagentEnd:
			got = append(got, "end "+b.Name+": "+b.Outcome+", "+b.Text)
		}
	}
	want := []string{"start agent-1: look into it", "end agent-1: done, the report"}
	if !slices.Equal(got, want) || closed != nil {
		t.Errorf("noted %q, want %q; closed with %v", got, want, closed)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := store.List(agent.SessionsDir(home))
	if err != nil || len(list) != 2 || !slices.ContainsFunc(list, func(l store.Summary) bool {
		return l.ID == child && l.Parent == s.ID() && l.Text == "look into it"
	}) {
		t.Errorf("records %+v, %v", list, err)
	}
	if err := agent.DeleteSession(home, s.ID()); err != nil {
		t.Fatal(err)
	}
	if list, err := store.List(agent.SessionsDir(home)); err != nil || len(list) != 0 {
		t.Errorf("left after the parent's removal: %+v, %v", list, err)
	}
}

// TestSubagentEndsWithItsParent: closed, aborted, and by close_agent.
func TestSubagentEndsWithItsParent(t *testing.T) {
	for _, how := range []string{"close", "abort", "close_agent"} {
		t.Run(how, func(t *testing.T) {
			a, _ := open(t, nil, nil)
			begun := make(chan struct{})
			s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
				switch text := last(req); {
				case isChild(req):
					return coretest.Turn{Hook: func(*model.Request) { close(begun) }, Block: make(chan struct{})}
				case text == "go":
					return coretest.CallTools(spawn("wait for ever", ""))
				case strings.Contains(text, " is running") && how == "abort":
					return coretest.CallTools(on("wait", "agent-1", ""))
				case strings.Contains(text, " is running") && how == "close_agent":
					<-begun
					return coretest.CallTools(on("close_agent", "agent-1", ""))
				default:
					return coretest.Say(text)
				}
			})})
			if err != nil {
				t.Fatal(err)
			}
			ctx, abort := context.WithCancel(t.Context())
			defer abort()
			done := make(chan core.Outcome, 1)
			go func() {
				out, _ := s.Submit(ctx, core.TextInput("go"))
				done <- out
			}()
			<-begun
			if how == "abort" {
				abort()
			}
			if out := <-done; how == "close_agent" && !strings.Contains(out.Text, "is closed; it was running") {
				t.Errorf("answered %q", out.Text)
			}
			if err := s.Close(); err != nil { // TestMain finds what is left
				t.Error(err)
			}
		})
	}
}

// TestMessageDuringLastCall: a subagent reads a message that arrives during its last
// model call before it is done; waiting for one that failed returns data.
func TestMessageDuringLastCall(t *testing.T) {
	a, _ := open(t, nil, nil)
	sent := make(chan struct{})
	var once sync.Once
	var failed *event.ToolResult
	out, s := talk(t, a, agent.SessionOptions{Provider: byRequest(func(req *model.Request) coretest.Turn {
		text := last(req)
		switch {
		case isChild(req) && text == "work":
			<-sent
			return coretest.Say("First report.")
		case isChild(req) && text == "fail":
			return coretest.Turn{Err: &model.Error{Code: model.CodeAuthentication, Message: "no such key"}}
		case isChild(req):
			return coretest.Say("I read: " + text + strings.Repeat(" long", 10_000) + " END")
		case text == "go":
			return coretest.CallTools(spawn("work", ""))
		case strings.Contains(text, "is running"):
			return coretest.CallTools(on("send_input", "agent-1", `,"message":"one more thing"`))
		case strings.Contains(text, "waits for"):
			once.Do(func() { close(sent) })
			return coretest.CallTools(on("wait", "agent-1", ""))
		case strings.Contains(text, "is done"):
			return coretest.CallTools(spawn("fail", ""), on("wait", "agent-2", ""))
		}
		return coretest.Say(text)
	})})
	var report event.ToolResult
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, b := range coretest.Bodies[event.ToolResult](coretest.Collect(t, s, nil).Drain(t)) {
		if b.Name == "wait" && !b.IsError {
			report = b
		} else if b.Name == "wait" {
			failed = &b
		}
	}
	if text := report.Content.Text(); !strings.Contains(text, "I read: one more thing") || !strings.HasSuffix(strings.TrimSpace(string(report.Structured)), "}") || len(text) > 25_000 || report.Output == nil {
		t.Errorf("the report is %.200q, full output %v", text, report.Output)
	}
	if failed == nil || !strings.Contains(string(failed.Structured), `"error":`) || !strings.Contains(string(failed.Structured), "no such key") {
		t.Errorf("the failure is %+v; the session ended with %q", failed, out.Text)
	}
}

// TestSubagentCeilings: the parent limits the tokens and the cost of a subagent.
func TestSubagentCeilings(t *testing.T) {
	for _, tt := range []struct{ name, more string }{
		{"tokens", `,"max_tokens":1500`},
		{"cost", `,"max_cost_usd":0.15`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, _ := open(t, nil, map[string]string{"a.txt": "alpha\n"})
			calls := atomic.Int64{}
			out, _ := talk(t, a, agent.SessionOptions{
				Limits: core.Limits{MaxSessionTokens: 1_000_000, MaxCost: 100},
				Cost:   func(string, string, model.Usage) (float64, bool) { return 0.1, true },
				Provider: byRequest(func(req *model.Request) coretest.Turn {
					text := last(req)
					switch {
					case isChild(req):
						calls.Add(1)
						return coretest.Turn{Calls: []model.ToolCall{{Name: "read_file", Args: `{"file_path":"a.txt"}`}}, Usage: model.Usage{Input: 900, Output: 10}}
					case text == "go":
						return coretest.CallTools(spawn("work", tt.more), on("wait", "agent-1", ""))
					}
					return coretest.Say(text)
				}),
			})
			if n := calls.Load(); n < 1 || n > 2 || !strings.Contains(out.Text, "stopped early (token_limit)") {
				t.Errorf("%d calls; the parent got %q", n, out.Text)
			}
		})
	}
}
