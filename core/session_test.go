package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a session with test doubles.
type rig struct {
	*core.Session
	model   *coretest.FakeProvider
	journal *coretest.MemoryJournal
	events  *coretest.Collector
}

func newRig(t *testing.T, change func(*core.Config), turns ...coretest.Turn) *rig {
	t.Helper()
	r := &rig{model: coretest.Model(turns...), journal: &coretest.MemoryJournal{}}
	cfg := core.Config{
		Provider: r.model, Env: env.NewMemory("/work", map[string]string{"a.txt": "one\n"}), Policy: coretest.AllowAll,
		Journal: r.journal, Store: &coretest.MemoryStore{}, Clock: coretest.Clock(), NewID: coretest.NewID("id"),
	}
	if change != nil {
		change(&cfg)
	}
	if j, ok := cfg.Journal.(*coretest.MemoryJournal); ok {
		r.journal = j
	}
	s, err := core.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Session = s
	r.events = coretest.Collect(t, s, nil)
	t.Cleanup(func() { _ = s.Close() })
	return r
}

func (r *rig) submit(t *testing.T, text string) core.Outcome {
	t.Helper()
	out, err := r.Submit(t.Context(), core.TextInput(text))
	if err != nil {
		t.Fatalf("Submit(%q): %v", text, err)
	}
	return out
}

// ended closes the session and returns all its events.
func (r *rig) ended(t *testing.T) []event.Event {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r.events.Drain(t)
}

// results returns the tool results in a request, the newest last.
func results(req model.Request) []model.ToolResult {
	var out []model.ToolResult
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(model.ToolResult); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

type note struct {
	Text string `json:"text"`
}

// tool returns a tool without accesses that runs f.
func tool(name string, f func(ctx context.Context, c *core.Call, in note) (core.Result, error)) core.Tool {
	return core.NewTool(core.ToolDefinition{Name: name, Description: name, ReadOnly: true}, nil, f)
}

var echo = tool("echo", func(_ context.Context, _ *core.Call, in note) (core.Result, error) {
	return core.TextResult("echo: " + in.Text), nil
})

func call(name, args string) model.ToolCall { return model.ToolCall{Name: name, Args: args} }

func withTools(tools ...core.Tool) func(*core.Config) {
	return func(c *core.Config) { c.Tools = core.StaticTools(tools...) }
}

func TestSubmitRunsToolsUntilTheModelIsDone(t *testing.T) {
	r := newRig(t, withTools(echo),
		coretest.Turn{Text: "Let me see.", Calls: []model.ToolCall{call("echo", `{"text":"x"}`)}, Usage: model.Usage{Input: 10, Output: 5}},
		coretest.Turn{Text: "It is x.", Usage: model.Usage{Input: 20, Output: 3}})
	out := r.submit(t, "what is it")
	if out.Stop != core.StopDone || out.Text != "It is x." || out.Rounds != 1 || out.Usage != (model.Usage{Input: 30, Output: 8}) {
		t.Errorf("outcome %+v", out)
	}
	got := results(r.model.Requests()[1])
	if len(got) != 1 || got[0].Content[0] != (model.Text{Text: "echo: x"}) || got[0].IsError {
		t.Errorf("the model got %+v", got)
	}
	want := []string{
		"session_start", "user", "prompt", "llm_start", "message_start", "message_delta", "message", "llm_end",
		"tool_use", "permission", "tool_result", "llm_start", "message_start", "message_delta", "message", "llm_end", "idle", "session_end",
	}
	if got := coretest.Types(r.ended(t)); !slices.Equal(got, want) {
		t.Errorf("events\n got %v\nwant %v", got, want)
	}
	if r.journal.Syncs() == 0 {
		t.Error("the journal was not synced at the end of the turn")
	}
}

func TestStates(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, nil, coretest.Turn{Text: "Which one?", Block: hold}, coretest.Say("Good."))
	if r.State() != core.StateIdle {
		t.Fatalf("a new session is %s", r.State())
	}
	done := make(chan core.Outcome)
	go func() { done <- r.submit(t, "go") }()
	r.events.Wait(t, "message_delta")
	if r.State() != core.StateProcessing {
		t.Errorf("while the model answers the session is %s", r.State())
	}
	if _, err := r.Submit(t.Context(), core.TextInput("more")); !errors.Is(err, core.ErrBusy) {
		t.Errorf("a second Submit: %v, want ErrBusy", err)
	}
	close(hold)
	if out := <-done; out.Stop != core.StopAwaitingInput || r.State() != core.StateAwaitingInput {
		t.Errorf("after a question: stop %s, state %s", out.Stop, r.State())
	}
	if out := r.submit(t, "that one"); out.Stop != core.StopDone || r.State() != core.StateIdle {
		t.Errorf("after the answer: stop %s, state %s", out.Stop, r.State())
	}
	_ = r.Close()
	if _, err := r.Submit(t.Context(), core.TextInput("late")); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Submit on a closed session: %v, want ErrClosed", err)
	}
}

func TestToolFailuresReachTheModelAsResults(t *testing.T) {
	boom := tool("boom", func(context.Context, *core.Call, note) (core.Result, error) { panic("boom") })
	broken := tool("broken", func(context.Context, *core.Call, note) (core.Result, error) {
		return core.Result{}, errors.New("the wire is cut")
	})
	for _, tt := range []struct{ name, args, want string }{
		{"nope", `{}`, "Unknown tool: nope"},
		{"echo", `{"text":`, "not valid JSON"},
		{"echo", `{"text":{"a":1}}`, "at /text: expected \"string\", got an object"},
		{"echo", `{"text":null}`, "at /text: expected \"string\", got null"},
		{"echo", `{}`, `"text"`},
		{"echo", `[]`, "must be a JSON object"},
		{"boom", `{"text":""}`, "tool boom panicked: boom"},
		{"broken", `{"text":""}`, "Tool error (broken): the wire is cut"},
	} {
		t.Run(tt.name+tt.args, func(t *testing.T) {
			r := newRig(t, withTools(echo, boom, broken), coretest.CallTools(call(tt.name, tt.args)), coretest.Say("I see."))
			r.submit(t, "go")
			got := results(r.model.Requests()[1])
			if len(got) != 1 || !got[0].IsError || !strings.Contains(got[0].Content.Text(), tt.want) {
				t.Errorf("the model got %+v, want an error with %q", got, tt.want)
			}
		})
	}
}

// TestCallsAreCorrected: a call whose meaning is clear runs, with a note.
func TestCallsAreCorrected(t *testing.T) {
	for _, tt := range []struct{ name, args, want string }{
		{"echo", `{"text":3}`, "echo: 3\n(Call corrected: text: used as a string.)"},
		{"functions.echo", `{"text":"a"}`, "echo: a\n(Call corrected: the tool is called echo.)"},
		{"Echo", `{"text":"a","why":null}`, "echo: a\n(Call corrected: the tool is called echo; why: ignored, since there is no such argument.)"},
	} {
		r := newRig(t, withTools(echo), coretest.CallTools(call(tt.name, tt.args)), coretest.Say("I see."))
		r.submit(t, "go")
		if got := results(r.model.Requests()[1]); len(got) != 1 || got[0].IsError || got[0].Content.Text() != tt.want {
			t.Errorf("%s %s: %+v, want %q", tt.name, tt.args, got, tt.want)
		}
		for _, m := range r.model.Requests()[1].Messages {
			for _, c := range m.Parts.ToolCalls() {
				if c.Name != "echo" {
					t.Errorf("the history has a call of %q", c.Name)
				}
			}
		}
	}
	other := tool("read_file", func(context.Context, *core.Call, note) (core.Result, error) { return core.TextResult("read"), nil })
	r := newRig(t, withTools(other), coretest.CallTools(call("server.read_file", `{"text":""}`)), coretest.Say("I see."))
	r.submit(t, "go")
	if got := results(r.model.Requests()[1]); !got[0].IsError {
		t.Errorf("another server's tool was taken for read_file: %+v", got)
	}
}

// meeting is a tool whose calls wait for each other: they end only if n of them
// run in parallel.
func meeting(n int) core.Tool {
	var wg sync.WaitGroup
	wg.Add(n)
	return tool("meet", func(ctx context.Context, _ *core.Call, in note) (core.Result, error) {
		wg.Done()
		met := make(chan struct{})
		go func() { wg.Wait(); close(met) }()
		<-met
		return core.TextResult(in.Text), nil
	})
}

func TestReadsRunSideBySideAndKeepTheirOrder(t *testing.T) {
	r := newRig(t, withTools(meeting(3)),
		coretest.CallTools(call("meet", `{"text":"1"}`), call("meet", `{"text":"2"}`), call("meet", `{"text":"3"}`)), coretest.Say("Done."))
	r.submit(t, "go")
	for i, res := range results(r.model.Requests()[1]) {
		if want := fmt.Sprint(i + 1); res.Content.Text() != want {
			t.Errorf("result %d is %q, want %q", i, res.Content.Text(), want)
		}
	}
}

// TestMutatingCallsRunAlone: a call that writes starts after the reads before it
// and ends before the reads after it.
func TestMutatingCallsRunAlone(t *testing.T) {
	for _, sequential := range []bool{false, true} {
		var mu sync.Mutex
		var trace []string
		running := 0
		step := func(name string, scope core.Scope) core.Tool {
			return core.NewTool(core.ToolDefinition{Name: name, ReadOnly: scope == core.ScopeRead},
				func(context.Context, *core.Call, note) ([]core.Access, error) {
					return []core.Access{{Scope: scope, Resource: "a.txt"}}, nil
				},
				func(_ context.Context, _ *core.Call, in note) (core.Result, error) {
					mu.Lock()
					defer mu.Unlock()
					running++
					if name == "write" && running != 1 {
						t.Errorf("the write ran in parallel with %d others", running-1)
					}
					trace = append(trace, in.Text)
					running--
					return core.TextResult("ok"), nil
				})
		}
		r := newRig(t, func(c *core.Config) {
			c.Tools = core.StaticTools(step("read", core.ScopeRead), step("write", core.ScopeWrite))
			c.Profile.Sequential = sequential
		}, coretest.CallTools(call("read", `{"text":"r"}`), call("read", `{"text":"r"}`), call("write", `{"text":"w"}`), call("read", `{"text":"R"}`)), coretest.Say("Done."))
		r.submit(t, "go")
		if got := strings.Join(trace, ""); got != "rrwR" {
			t.Errorf("sequential %t: ran in the order %s, want rrwR", sequential, got)
		}
	}
}

// TestNotify: a message of the host is a system message to the model, is recorded as
// such, and is the same in a resumed session.
func TestNotify(t *testing.T) {
	r := newRig(t, nil, coretest.Say("Done."), coretest.Say("I see."))
	r.submit(t, "go")
	r.Notify("The build has ended.")
	r.submit(t, "and now?")
	want := "user: go\nassistant: Done.\nuser: and now?\nuser: <system_message>\nThe build has ended.\n</system_message>"
	if got := sent(r.model.Requests()[1]); got != want {
		t.Errorf("the model gets\n%s\nwant\n%s", got, want)
	}
	again := newRig(t, func(c *core.Config) { c.Journal = r.journal })
	if got := sent(model.Request{Messages: again.Messages()}); got != want+"\nassistant: I see." {
		t.Errorf("the resumed session has\n%s", got)
	}
	if s := coretest.Bodies[event.Steering](r.ended(t)); len(s) != 1 || s[0].Source != "system" {
		t.Errorf("recorded %+v", s)
	}
}

func TestSteeringAndFollowUps(t *testing.T) {
	var r *rig
	steer := tool("steer", func(context.Context, *core.Call, note) (core.Result, error) {
		r.Steer(core.TextInput("rather the other file"))
		r.FollowUp(core.TextInput("and then tidy up"))
		return core.TextResult("ok"), nil
	})
	r = newRig(t, withTools(steer), coretest.CallTools(call("steer", `{"text":""}`)), coretest.Say("Done."), coretest.Say("Tidy."))
	r.Steer(core.TextInput("be quick"))
	out := r.submit(t, "go")
	if out.Text != "Tidy." || out.Stop != core.StopDone {
		t.Errorf("outcome %+v, want that of the follow-up", out)
	}
	var sent [][]string
	for _, req := range r.model.Requests() {
		var texts []string
		for _, m := range req.Messages {
			if m.Role == model.RoleUser {
				texts = append(texts, m.Parts.Text())
			}
		}
		sent = append(sent, texts)
	}
	want := [][]string{{"go", "be quick"}, {"go", "be quick", "rather the other file"}, {"go", "be quick", "rather the other file", "and then tidy up"}}
	if fmt.Sprint(sent) != fmt.Sprint(want) {
		t.Errorf("the requests had\n%q, want\n%q", sent, want)
	}
}

func TestLimits(t *testing.T) {
	loop := make([]coretest.Turn, 6)
	for i := range loop {
		loop[i] = coretest.Turn{Calls: []model.ToolCall{call("echo", fmt.Sprintf(`{"text":"%d"}`, i))}, Usage: model.Usage{Input: 90, Output: 10}}
	}
	for _, tt := range []struct {
		name   string
		limits core.Limits
		stop   core.StopReason
		calls  int
	}{
		{"rounds", core.Limits{MaxRounds: 2}, core.StopTurnLimit, 2},
		{"turns", core.Limits{MaxTurns: 4}, core.StopTurnLimit, 3},
		{"tokens of the session", core.Limits{MaxSessionTokens: 350}, core.StopTokenLimit, 3},
		{"tokens of the input", core.Limits{MaxInputTokens: 250}, core.StopTokenLimit, 2},
		{"cost", core.Limits{MaxCost: 0.25}, core.StopTokenLimit, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *core.Config) {
				c.Tools, c.Limits = core.StaticTools(echo), tt.limits
				c.Cost = func(string, string, model.Usage) (float64, bool) { return 0.1, true }
			}, loop...)
			out := r.submit(t, "go")
			if out.Stop != tt.stop || len(r.model.Requests()) != tt.calls || r.State() != core.StateIdle {
				t.Errorf("stop %s after %d calls, state %s; want %s after %d, idle", out.Stop, len(r.model.Requests()), r.State(), tt.stop, tt.calls)
			}
		})
	}
}

func TestLoopDetection(t *testing.T) {
	for _, pattern := range []int{1, 2, 3} {
		turns := make([]coretest.Turn, 10, 11)
		for i := range turns {
			turns[i] = coretest.CallTools(call("echo", fmt.Sprintf(`{"text":"%d"}`, i%pattern)))
		}
		r := newRig(t, withTools(echo), append(turns, coretest.Say("I stop."))...)
		r.submit(t, "go")
		found := coretest.Bodies[event.LoopDetection](r.ended(t))
		if len(found) != 1 || found[0].Pattern != pattern {
			t.Errorf("a pattern of %d calls: detected %+v", pattern, found)
		}
		msgs := r.model.Requests()[10].Messages
		if last := msgs[len(msgs)-1]; last.Role != model.RoleUser || !strings.Contains(last.Parts.Text(), "Loop detected") {
			t.Errorf("the model was told %+v", last)
		}
	}
	// Ten different calls are not a pattern.
	turns := make([]coretest.Turn, 10, 11)
	for i := range turns {
		turns[i] = coretest.CallTools(call("echo", fmt.Sprintf(`{"text":"%d"}`, i)))
	}
	r := newRig(t, withTools(echo), append(turns, coretest.Say("Done."))...)
	r.submit(t, "go")
	if found := coretest.Bodies[event.LoopDetection](r.ended(t)); len(found) != 0 {
		t.Errorf("ten different calls: detected %+v", found)
	}
}

func TestAResponseCutAtItsTokenLimitRunsNothing(t *testing.T) {
	ran := false
	t1 := tool("echo", func(context.Context, *core.Call, note) (core.Result, error) {
		ran = true
		return core.TextResult(""), nil
	})
	r := newRig(t, withTools(t1), coretest.Turn{Calls: []model.ToolCall{call("echo", `{"text":"x"}`)}, Stop: model.StopMaxTokens}, coretest.Say("Again."))
	r.submit(t, "go")
	got := results(r.model.Requests()[1])
	if ran || len(got) != 1 || !got[0].IsError || !strings.Contains(got[0].Content.Text(), "the response was cut off (max_tokens)") {
		t.Errorf("ran %t, the model got %+v", ran, got)
	}
	r = newRig(t, nil, coretest.Turn{Text: "so far", Stop: model.StopMaxTokens})
	if out := r.submit(t, "go"); out.Stop != core.StopMaxTokens {
		t.Errorf("a text cut at its token limit: stop %s", out.Stop)
	}
}

func TestAStreamCutInAToolCallRunsNothing(t *testing.T) {
	ran := false
	t1 := tool("echo", func(context.Context, *core.Call, note) (core.Result, error) {
		ran = true
		return core.TextResult(""), nil
	})
	r := newRig(t, withTools(t1), coretest.Turn{Text: "I will", Calls: []model.ToolCall{call("echo", `{"text":"x"}`)}, Cut: true}, coretest.Say("Done."))
	out, err := r.Submit(t.Context(), core.TextInput("go"))
	if err == nil || out.Stop != core.StopError || ran {
		t.Fatalf("stop %s, error %v, ran %t; want an error and no run", out.Stop, err, ran)
	}
	if r.State() != core.StateUnfinished {
		t.Fatalf("after a broken stream the session is %s, want idle", r.State())
	}
	// An empty input resends the complete parts only.
	if _, err := r.Submit(t.Context(), core.Input{}); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.model.Requests()[1].Messages {
		if len(m.Parts.ToolCalls()) > 0 {
			t.Errorf("the incomplete call was sent: %+v", m)
		}
	}
}

func TestModelErrorsMoveTheState(t *testing.T) {
	for _, tt := range []struct {
		code  model.ErrorCode
		state core.State
		stop  core.StopReason
	}{
		{model.CodeAuthentication, core.StateClosed, core.StopError},
		{model.CodeInvalidRequest, core.StateClosed, core.StopError},
		{model.CodeRateLimited, core.StateUnfinished, core.StopError},
		{model.CodeNetwork, core.StateUnfinished, core.StopError},
		{model.CodeTimeout, core.StateUnfinished, core.StopError},
		{model.CodeContextLength, core.StateUnfinished, core.StopContextLength},
	} {
		t.Run(string(tt.code), func(t *testing.T) {
			r := newRig(t, nil, coretest.Turn{Err: &model.Error{Code: tt.code, Message: "no"}})
			out, err := r.Submit(t.Context(), core.TextInput("go"))
			var e *model.Error
			if !errors.As(err, &e) || e.Code != tt.code || out.Stop != tt.stop || r.State() != tt.state {
				t.Errorf("stop %s, state %s, error %v; want %s, %s", out.Stop, r.State(), err, tt.stop, tt.state)
			}
		})
	}
}

func TestSoftCancelLetsTheRunningToolFinish(t *testing.T) {
	var r *rig
	slow := tool("slow", func(ctx context.Context, _ *core.Call, _ note) (core.Result, error) {
		r.Cancel("on request")
		if ctx.Err() != nil {
			return core.Result{}, ctx.Err()
		}
		return core.TextResult("finished"), nil
	})
	r = newRig(t, func(c *core.Config) { c.Tools, c.Profile.Sequential = core.StaticTools(slow, echo), true },
		coretest.CallTools(call("slow", `{"text":""}`), call("echo", `{"text":"x"}`)), coretest.Say("On we go."))
	out := r.submit(t, "go")
	if out.Stop != core.StopCancelled || r.State() != core.StateIdle {
		t.Fatalf("stop %s, state %s", out.Stop, r.State())
	}
	r.submit(t, "go on")
	got := results(r.model.Requests()[1])
	if len(got) != 2 || got[0].Content.Text() != "finished" || !got[1].IsError {
		t.Errorf("the model got %+v, want the finished result and a cancelled one", got)
	}
}

func TestSoftCancelEndsTheStreamAndKeepsItsText(t *testing.T) {
	r := newRig(t, nil, coretest.Turn{Text: "Half a", Block: make(chan struct{})}, coretest.Say("Good."))
	done := make(chan core.Outcome)
	go func() { done <- r.submit(t, "go") }()
	r.events.Wait(t, "message_delta")
	r.Cancel("enough")
	r.Cancel("enough") // idempotent
	if out := <-done; out.Stop != core.StopCancelled {
		t.Fatalf("stop %s", out.Stop)
	}
	r.submit(t, "and?")
	if m := r.model.Requests()[1].Messages; len(m) != 3 || m[1].Parts.Text() != "Half a" {
		t.Errorf("the next message is %+v", m)
	}
}

func TestTheEndOfAContextLeavesTheSessionUsable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hang := tool("hang", func(ctx context.Context, _ *core.Call, _ note) (core.Result, error) {
		cancel()
		<-ctx.Done()
		return core.Result{}, ctx.Err()
	})
	r := newRig(t, withTools(hang, echo), coretest.CallTools(call("hang", `{"text":""}`), call("echo", `{"text":"x"}`)), coretest.Say("Hello again."))
	out, err := r.Submit(ctx, core.TextInput("go"))
	if out.Stop != core.StopAborted || !errors.Is(err, context.Canceled) || r.State() != core.StateUnfinished {
		t.Fatalf("stop %s, error %v, state %s", out.Stop, err, r.State())
	}
	if out, err := r.Submit(t.Context(), core.Input{}); err != nil || out.Text != "Hello again." || r.State() != core.StateIdle {
		t.Errorf("continued: %+v, %v, state %s", out, err, r.State())
	}
	if got := results(r.model.Requests()[1]); len(got) != 2 || !got[0].IsError {
		t.Errorf("after the abort the model gets %+v", got)
	}
}

func TestSubmitWithAContextThatIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := newRig(t, nil)
	out, err := r.Submit(ctx, core.TextInput("go"))
	if out.Stop != core.StopAborted || !errors.Is(err, context.Canceled) || len(r.model.Requests()) != 0 || r.State() != core.StateUnfinished {
		t.Errorf("stop %s, error %v, %d requests, state %s", out.Stop, err, len(r.model.Requests()), r.State())
	}
}

func TestCloseAbortsWhatRuns(t *testing.T) {
	r := newRig(t, nil, coretest.Turn{Text: "x", Block: make(chan struct{})})
	done := make(chan error)
	go func() {
		_, err := r.Submit(t.Context(), core.TextInput("go"))
		done <- err
	}()
	r.events.Wait(t, "message_delta")
	_ = r.Close()
	if err := <-done; err == nil {
		t.Error("Submit ended without an error although the session was closed")
	}
	if r.State() != core.StateClosed {
		t.Errorf("state %s", r.State())
	}
}

// TestResumeAtEveryRecord truncates the journal after each record, as a kill
// would, and resumes: the conversation is valid, and a complete one is sent byte
// for byte.
func TestResumeAtEveryRecord(t *testing.T) {
	turns := []coretest.Turn{
		{Text: "Let me see.", Calls: []model.ToolCall{call("echo", `{"text":"<&>"}`), call("echo", `{ "text" : "y" }`)}},
		coretest.Say("Done."),
	}
	profile := core.Profile{Name: "p", Prompt: func(context.Context, core.PromptRequest) (string, error) { return "Be good.", nil }}
	setup := func(c *core.Config) { c.Tools, c.Profile = core.StaticTools(echo), profile }
	whole := newRig(t, setup, turns...)
	whole.submit(t, "go")
	whole.ended(t)
	lines := whole.journal.Lines()
	for n := 1; n <= len(lines); n++ {
		journal := &coretest.MemoryJournal{}
		for e, err := range whole.journal.Replay(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if err := journal.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		journal.Truncate(n)
		r := newRig(t, func(c *core.Config) { setup(c); c.Journal = journal }, coretest.Say("Hello again."))
		r.submit(t, "more")
		req := r.model.Requests()[0]
		open := map[string]bool{}
		for _, m := range req.Messages {
			for _, c := range m.Parts.ToolCalls() {
				open[c.ID] = true
			}
			for _, res := range results(model.Request{Messages: []model.Message{m}}) {
				if !open[res.CallID] {
					t.Fatalf("cut after %d records: a result without a call: %+v", n, res)
				}
				delete(open, res.CallID)
			}
		}
		if len(open) > 0 {
			t.Errorf("cut after %d records (%s): calls without results: %v", n, lines[n-1], open)
		}
		if n == len(lines) {
			first, _ := json.Marshal(whole.model.Requests()[1].Messages)
			now, _ := json.Marshal(req.Messages)
			if !strings.HasPrefix(string(now), strings.TrimSuffix(string(first), "]")) || req.System != "Be good." {
				t.Errorf("the resumed session sends\n%s\nwhich does not begin with\n%s", now, first)
			}
		}
	}
}

func TestResumeRefusesWhatItDoesNotKnow(t *testing.T) {
	journal := &coretest.MemoryJournal{}
	raw := `{"v":1,"seq":1,"id":"x","time":"2026-01-01T00:00:00Z","session":"s","type":"teleport","required":true}`
	var e event.Event
	if err := json.Unmarshal([]byte(raw), &e); err != nil {
		t.Fatal(err)
	}
	if err := journal.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	_, err := core.New(t.Context(), core.Config{Provider: coretest.Model(), Env: env.NewMemory("/", nil), Policy: coretest.DenyAll, Journal: journal})
	if err == nil || !strings.Contains(err.Error(), "teleport") {
		t.Errorf("error %v, want one that names the record's type", err)
	}
}

// TestAFailingJournalStopsTheWork fails the journal at each of its appends: no
// tool runs and no model is asked without a record of it, and nothing is lost once
// the journal works again.
func TestAFailingJournalStopsTheWork(t *testing.T) {
	for n := 1; ; n++ {
		journal := &coretest.MemoryJournal{}
		journal.FailAfter(n)
		unrecorded := func(what string, wanted int) {
			if got := strings.Count(strings.Join(journal.Lines(), "\n"), what); got < wanted {
				t.Errorf("journal that fails after %d: side effect %d without %s", n, wanted, what)
			}
		}
		runs := 0
		effect := core.NewTool(core.ToolDefinition{Name: "effect"}, nil, func(context.Context, *core.Call, note) (core.Result, error) {
			runs++
			unrecorded(`"type":"permission"`, runs)
			return core.TextResult("done"), nil
		})
		asked := 0
		ask := func(*model.Request) { asked++; unrecorded(`"type":"llm_start"`, asked) }
		both := coretest.CallTools(call("effect", `{"text":"a"}`), call("effect", `{"text":"b"}`))
		both.Hook = ask
		said := coretest.Turn{Text: "Done.", Hook: ask}
		r := newRig(t, func(c *core.Config) { c.Journal, c.Tools = journal, core.StaticTools(effect) }, both, both, said, said)
		out, err := r.Submit(t.Context(), core.TextInput("go"))
		if err == nil && out.Stop == core.StopDone {
			if n < 20 {
				t.Fatalf("the journal was not to fail after %d records", n)
			}
			break
		}
		if !errors.As(err, new(*core.JournalError)) || !errors.Is(err, coretest.ErrJournalFull) || out.Stop != core.StopError || r.State() != core.StateUnfinished {
			t.Fatalf("journal that fails after %d: %+v, %v, %s", n, out, err, r.State())
		}
		before := asked
		if _, err := r.Submit(t.Context(), core.TextInput("again")); !errors.As(err, new(*core.JournalError)) || asked != before {
			t.Errorf("journal that still fails: %v, %d model calls", err, asked-before)
		}
		journal.FailAfter(-1)
		if out, err := r.Submit(t.Context(), core.Input{}); err != nil || out.Text != "Done." {
			t.Fatalf("journal that works again: %+v, %v", out, err)
		}
		var recorded []string
		for e, err := range journal.Replay(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			recorded = append(recorded, fmt.Sprint(e.Seq, e.Body.Type()))
		}
		var shown []string
		for _, e := range r.ended(t) {
			if !e.IsDelta() && e.Body.Type() != "session_end" {
				shown = append(shown, fmt.Sprint(e.Seq, e.Body.Type()))
			}
		}
		if !slices.Equal(recorded, shown) {
			t.Fatalf("journal that failed after %d: recorded\n%v, shown\n%v", n, recorded, shown)
		}
	}
}

func TestAnOptionalJournalDoesNotStopTheWork(t *testing.T) {
	journal := &coretest.MemoryJournal{}
	journal.FailAfter(3)
	r := newRig(t, func(c *core.Config) { c.Journal, c.JournalOptional, c.Tools = journal, true, core.StaticTools(echo) },
		coretest.CallTools(call("echo", `{"text":"x"}`)), coretest.Say("Done."))
	if out := r.submit(t, "go"); out.Text != "Done." {
		t.Errorf("outcome %+v", out)
	}
	warnings := coretest.Bodies[event.Warning](r.ended(t))
	if len(warnings) != 1 || warnings[0].Code != "JOURNAL" || !strings.Contains(warnings[0].Message, "in memory only") {
		t.Errorf("warnings %+v, want one that says so", warnings)
	}
}

// TestASessionNeedsItsJournal: without a first record there is no session.
func TestASessionNeedsItsJournal(t *testing.T) {
	journal := &coretest.MemoryJournal{}
	journal.FailAfter(0)
	_, err := core.New(t.Context(), core.Config{Provider: coretest.Model(), Env: env.NewMemory("/", nil), Policy: coretest.DenyAll, Journal: journal})
	if !errors.As(err, new(*core.JournalError)) {
		t.Errorf("got %v", err)
	}
}

func TestPermission(t *testing.T) {
	write := core.NewTool(core.ToolDefinition{Name: "write"},
		func(context.Context, *core.Call, note) ([]core.Access, error) {
			return []core.Access{{Scope: core.ScopeWrite, Resource: "a.txt"}}, nil
		},
		func(ctx context.Context, c *core.Call, in note) (core.Result, error) {
			if err := c.Env.Files().Write(ctx, in.Text, strings.NewReader("new"), 0); err != nil {
				return core.Result{}, err
			}
			return core.TextResult("written"), nil
		})
	for _, tt := range []struct {
		name    string
		policy  core.Policy
		asker   core.Asker
		target  string
		want    string
		denied  int
		decider string
	}{
		{"allowed", coretest.AllowAll, nil, "a.txt", "written", 0, "policy"},
		{"another file than granted", coretest.AllowAll, nil, "b.txt", "was not granted", 0, "policy"},
		{"denied", coretest.DenyAll, nil, "a.txt", "Permission denied", 1, "policy"},
		{"non-interactive", coretest.AskAll, nil, "a.txt", "the session is non-interactive", 1, "headless"},
		{"user approves", coretest.AskAll, coretest.AlwaysAnswer(core.ChoiceOnce), "a.txt", "written", 0, "person"},
		{"user denies", coretest.AskAll, coretest.AlwaysAnswer(core.ChoiceDeny), "a.txt", "Permission denied", 1, "person"},
		{"zero answer", coretest.AskAll, coretest.AlwaysAnswer(""), "a.txt", "Permission denied", 1, "person"},
		{"a choice not offered", coretest.AskAll, coretest.AlwaysAnswer(core.ChoiceAlways), "a.txt", "Permission denied", 1, "person"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *core.Config) { c.Tools, c.Policy, c.Asker = core.StaticTools(write), tt.policy, tt.asker },
				coretest.CallTools(call("write", fmt.Sprintf(`{"text":%q}`, tt.target))), coretest.Say("Done."))
			out := r.submit(t, "go")
			got := results(r.model.Requests()[1])[0].Content.Text()
			if !strings.Contains(got, tt.want) || len(out.Denied) != tt.denied {
				t.Errorf("the model got %q, %d denied; want %q, %d", got, len(out.Denied), tt.want, tt.denied)
			}
			p := coretest.Bodies[event.Permission](r.ended(t))
			if len(p) != 1 || p[0].Decider != tt.decider || p[0].Accesses[0].Resource != "/work/a.txt" {
				t.Errorf("recorded %+v", p)
			}
		})
	}
}

func TestASessionGrantHoldsForThatAccessOnly(t *testing.T) {
	asked := 0
	asker := coretest.Asker(func(context.Context, core.Question) (core.Answer, error) {
		asked++
		return core.Answer{Choice: core.ChoiceSession}, nil
	})
	policy := grantingPolicy{}
	read := core.NewTool(core.ToolDefinition{Name: "read"},
		func(_ context.Context, _ *core.Call, in note) ([]core.Access, error) {
			return []core.Access{{Scope: core.ScopeRead, Resource: in.Text}}, nil
		},
		func(context.Context, *core.Call, note) (core.Result, error) { return core.TextResult("ok"), nil })
	var turns []coretest.Turn
	for _, file := range []string{"a", "a", "b", "a"} {
		turns = append(turns, coretest.CallTools(call("read", fmt.Sprintf(`{"text":%q}`, file))))
	}
	r := newRig(t, func(c *core.Config) { c.Tools, c.Policy, c.Asker = core.StaticTools(read), policy, asker }, append(turns, coretest.Say("Done."))...)
	r.submit(t, "go")
	if asked != 2 {
		t.Errorf("asked %d times, want once for each file", asked)
	}
}

// grantingPolicy asks for everything that was not granted.
type grantingPolicy struct{}

func (grantingPolicy) Decide(_ context.Context, req core.PermissionRequest) core.Decision {
	if req.Granted(req.Accesses[0]) {
		return core.Decision{Verdict: core.Allow}
	}
	return core.Decision{Verdict: core.Ask}
}

// TestPermissionRequestTitle checks the titles of permission requests.
func TestPermissionRequestTitle(t *testing.T) {
	access := func(scope core.Scope, resource string) core.Access {
		return core.Access{Scope: scope, Resource: resource}
	}
	for _, tt := range []struct {
		accesses []core.Access
		want     string
	}{
		{[]core.Access{access(core.ScopeShell, "go test ./...")}, "Run `go test ./...`?"},
		{[]core.Access{{Scope: core.ScopeShell, Resource: "docker ps", Unconfined: true}}, "Run `docker ps` outside the sandbox?"},
		{[]core.Access{access(core.ScopeSkillScript, "python lint.py")}, "Run the skill script `python lint.py`?"},
		{[]core.Access{access(core.ScopeRead, "/a"), access(core.ScopeRead, "/b")}, "Read /a (outside the workspace) and 1 more?"},
		{[]core.Access{{Scope: core.ScopeRead, Resource: "/etc", Recursive: true}}, "Read everything in /etc (outside the workspace)?"},
		{[]core.Access{access(core.ScopeRead, "/a"), access(core.ScopeWrite, "/b"), access(core.ScopeWrite, "/c")}, "Write /b (outside the workspace) and 1 more?"},
		{[]core.Access{access(core.ScopeRead, "/work/a"), access(core.ScopeWrite, "/work/a")}, "Edit /work/a?"},
		{[]core.Access{access(core.ScopeWrite, "/work/a")}, "Write /work/a?"},
		{[]core.Access{access(core.ScopeDelete, "/work/a")}, "Delete /work/a?"},
		{
			[]core.Access{access(core.ScopePlugin, "p/touch"), access(core.ScopeRead, "/a"), access(core.ScopeNetwork, "a.example"), access(core.ScopeNetwork, "b.example")},
			"Call touch of the plugin p and connect to a.example, b.example?",
		},
		{[]core.Access{access(core.ScopeNetwork, "a.example"), access(core.ScopeNetwork, "b.example")}, "Connect to a.example, b.example?"},
		{[]core.Access{access(core.ScopeMCP, "files/list")}, "Call list of the MCP server files?"},
		{[]core.Access{access(core.ScopeMCP, "files/resource:file:///a")}, "Read file:///a of the MCP server files?"},
		{[]core.Access{access(core.ScopeSubagent, "general")}, "Use the subagent general?"},
		{core.UnknownAccess("p/touch: fs-mount /"), "Call touch, which may have unknown effects: p/touch: fs-mount /?"},
	} {
		touch := core.NewTool(core.ToolDefinition{Name: "touch"}, func(context.Context, *core.Call, note) ([]core.Access, error) { return tt.accesses, nil },
			func(context.Context, *core.Call, note) (core.Result, error) { return core.TextResult("done"), nil })
		var title string
		r := newRig(t, func(c *core.Config) {
			c.Tools, c.Policy = core.StaticTools(touch), grantingPolicy{}
			c.Asker = coretest.Asker(func(_ context.Context, q core.Question) (core.Answer, error) {
				title = q.Title
				return core.Answer{Choice: core.ChoiceOnce}, nil
			})
		}, coretest.CallTools(call("touch", `{"text":""}`)), coretest.Say("Done."))
		r.submit(t, "go")
		if title != tt.want {
			t.Errorf("title %q, want %q", title, tt.want)
		}
	}
}

func TestQuestionsStopTheClock(t *testing.T) {
	var open, most int
	var mu sync.Mutex
	release := make(chan struct{})
	asker := coretest.Asker(func(ctx context.Context, q core.Question) (core.Answer, error) {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		<-release
		mu.Lock()
		open--
		mu.Unlock()
		return core.Answer{Choice: core.ChoiceYes}, nil
	})
	ask := core.NewTool(core.ToolDefinition{Name: "ask", ReadOnly: true, Timeout: time.Second}, nil,
		func(ctx context.Context, c *core.Call, in note) (core.Result, error) {
			a, err := c.Ask(ctx, core.Question{Kind: core.QuestionConfirm, Title: in.Text})
			if err != nil {
				return core.Result{}, err
			}
			return core.TextResult(string(a.Choice)), nil
		})
	r := newRig(t, func(c *core.Config) { c.Tools, c.Asker = core.StaticTools(ask), asker },
		coretest.CallTools(call("ask", `{"text":"1"}`), call("ask", `{"text":"2"}`)), coretest.Say("Done."))
	done := make(chan core.Outcome)
	go func() { done <- r.submit(t, "go") }()
	r.events.Wait(t, "question")
	<-time.After(1200 * time.Millisecond) // longer than the timeout, which is paused
	close(release)
	<-done
	if most != 2 {
		t.Errorf("%d questions were open at once, want both", most)
	}
	for _, res := range results(r.model.Requests()[1]) {
		if res.Content.Text() != "yes" {
			t.Errorf("the model got %+v", res)
		}
	}
}

func TestTimeoutEndsACall(t *testing.T) {
	slow := core.NewTool(core.ToolDefinition{Name: "slow", Timeout: time.Millisecond}, nil,
		func(ctx context.Context, _ *core.Call, _ note) (core.Result, error) {
			<-ctx.Done()
			return core.Result{}, ctx.Err()
		})
	r := newRig(t, withTools(slow), coretest.CallTools(call("slow", `{"text":""}`)), coretest.Say("Done."))
	r.submit(t, "go")
	if res := coretest.Bodies[event.ToolResult](r.ended(t)); len(res) != 1 || res[0].Code != string(core.CodeTimeout) {
		t.Errorf("result %+v", res)
	}
}

func TestHooks(t *testing.T) {
	r := newRig(t, func(c *core.Config) {
		c.Tools = core.StaticTools(echo)
		c.Hooks = core.Hooks{
			BeforeModel: func(_ context.Context, req *model.Request) error { req.System = "hooked"; return nil },
			BeforeTool: func(_ context.Context, c *model.ToolCall) error {
				if strings.Contains(c.Args, "bad") {
					return errors.New("not here")
				}
				c.Args = strings.ReplaceAll(c.Args, `"x"`, `"y"`)
				return nil
			},
			AfterTool: func(_ context.Context, _ model.ToolCall, res *core.Result) {
				res.Content = append(res.Content, model.Text{Text: "!"})
			},
		}
	}, coretest.CallTools(call("echo", `{"text":"x"}`), call("echo", `{"text":"bad"}`)), coretest.Say("Done."))
	out := r.submit(t, "go")
	reqs := r.model.Requests()
	got := results(reqs[1])
	if reqs[0].System != "hooked" || got[0].Content.Text() != "echo: y!" || !strings.Contains(got[1].Content.Text(), "not here") || len(out.Denied) != 1 {
		t.Errorf("system %q, results %+v, denied %+v", reqs[0].System, got, out.Denied)
	}
}

type source struct {
	blocks []core.Block
	err    error
}

func (s source) Context(context.Context, core.ContextRequest) ([]core.Block, error) {
	return s.blocks, s.err
}

func TestContextSourcesAddToTheUserTurn(t *testing.T) {
	r := newRig(t, func(c *core.Config) {
		c.Context = []core.ContextSource{source{blocks: []core.Block{{Source: "graph", Text: "a calls b"}}}, source{err: errors.New("no index")}}
	}, coretest.Say("Done."))
	r.submit(t, "go")
	if m := r.model.Requests()[0].Messages[0]; len(m.Parts) != 2 || !strings.Contains(m.Parts.Text(), "a calls b") {
		t.Errorf("the user turn is %+v", m)
	}
	if w := coretest.Bodies[event.Warning](r.ended(t)); len(w) != 1 || !strings.Contains(w[0].Message, "no index") {
		t.Errorf("warnings %+v", w)
	}
}

func TestSettingsChangeBetweenCalls(t *testing.T) {
	prompts := 0
	profile := core.Profile{Name: "p", Prompt: func(_ context.Context, req core.PromptRequest) (string, error) {
		prompts++
		return "for " + req.Model, nil
	}}
	r := newRig(t, func(c *core.Config) { c.Profile = profile }, coretest.Say("One."), coretest.Say("Two."), coretest.Say("Three."))
	r.submit(t, "1")
	r.SetRequest(core.RequestOptions{Effort: model.EffortHigh})
	r.submit(t, "2")
	r.SetModel(nil, "other-1")
	r.submit(t, "3")
	reqs := r.model.Requests()
	if reqs[0].Effort != "" || reqs[1].Effort != model.EffortHigh || reqs[1].System != reqs[0].System {
		t.Errorf("efforts %q, %q; systems %q, %q", reqs[0].Effort, reqs[1].Effort, reqs[0].System, reqs[1].System)
	}
	if reqs[2].Model != "other-1" || reqs[2].System != "for other-1" || prompts != 2 {
		t.Errorf("after the change: model %q, system %q, %d prompts built", reqs[2].Model, reqs[2].System, prompts)
	}
}

func TestCallsWithoutAnIDGetOne(t *testing.T) {
	r := newRig(t, withTools(echo), coretest.CallTools(
		model.ToolCall{ID: "same", Name: "echo", Args: `{"text":"1"}`}, model.ToolCall{ID: "same", Name: "echo", Args: `{"text":"2"}`}), coretest.Say("Done."))
	r.submit(t, "go")
	got := results(r.model.Requests()[1])
	if len(got) != 2 || got[0].CallID == got[1].CallID || got[1].Content.Text() != "echo: 2" {
		t.Errorf("results %+v", got)
	}
}

func TestTruncationKeepsTheFullOutput(t *testing.T) {
	big := core.NewTool(core.ToolDefinition{Name: "big", Output: core.OutputLimit{MaxChars: 100}}, nil,
		func(_ context.Context, c *core.Call, in note) (core.Result, error) {
			_, err := c.Output.Write([]byte(strings.Repeat("x", 500)))
			return core.TextResult("[end]"), err
		})
	r := newRig(t, withTools(big), coretest.CallTools(call("big", `{"text":""}`)), coretest.Say("Done."))
	r.submit(t, "go")
	got := results(r.model.Requests()[1])[0].Content.Text()
	if !strings.Contains(got, "406 characters were removed") || !strings.Contains(got, core.HandlePrefix) {
		t.Errorf("the model got %q", got)
	}
	res := coretest.Bodies[event.ToolResult](r.ended(t))
	if len(res) != 1 || res[0].Output == nil || res[0].Output.Text != strings.Repeat("x", 500)+"\n[end]" {
		t.Errorf("the event holds %+v", res[0].Output)
	}
}

func TestSecretsDoNotLeaveATool(t *testing.T) {
	leak := tool("leak", func(_ context.Context, _ *core.Call, in note) (core.Result, error) {
		res := core.TextResult(in.Text)
		res.Structured = json.RawMessage(`{"text":"` + in.Text + `"}`)
		res.Meta = map[string]json.RawMessage{"diff": json.RawMessage(`"` + in.Text + `"`)}
		return res, nil
	})
	r := newRig(t, func(c *core.Config) { c.Tools, c.Secrets = core.StaticTools(leak), []string{"hunter2-hunter2"} },
		coretest.CallTools(call("leak", `{"text":"pw hunter2-hunter2"}`)), coretest.Say("Done."))
	r.submit(t, "go")
	if got := results(r.model.Requests()[1])[0].Content.Text(); got != "pw [redacted]" {
		t.Errorf("the model got %q", got)
	}
	if res := coretest.Bodies[event.ToolResult](r.ended(t))[0]; strings.Contains(string(res.Structured)+string(res.Meta["diff"]), "hunter2") {
		t.Errorf("the event holds %s and %s", res.Structured, res.Meta["diff"])
	}
}

// TestSubmitFromManyGoroutines: one succeeds, the others get ErrBusy.
func TestSubmitFromManyGoroutines(t *testing.T) {
	turns := make([]coretest.Turn, 40)
	for i := range turns {
		turns[i] = coretest.Say("ok")
	}
	r := newRig(t, nil, turns...)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := r.Submit(t.Context(), core.TextInput("go")); err != nil && !errors.Is(err, core.ErrBusy) {
				t.Error(err)
			}
			r.Steer(core.TextInput("s"))
			r.Cancel("x")
			_ = r.State()
		})
	}
	wg.Wait()
}

// window is a profile for a model of so many tokens.
func window(tokens int) core.Profile {
	return core.Profile{Name: "p", ContextWindow: tokens, Prompt: func(context.Context, core.PromptRequest) (string, error) { return "Be good.", nil }}
}

// sent returns the text of a request's messages.
func sent(r model.Request) string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, string(m.Role)+": "+m.Parts.Text())
	}
	return strings.Join(out, "\n")
}

// TestCompact: a summary replaces the beginning, the journal keeps everything,
// and a resumed session sends the same bytes.
func TestCompact(t *testing.T) {
	setup := func(c *core.Config) { c.Tools, c.Profile = core.StaticTools(echo), window(200) }
	r := newRig(
		t, setup,
		coretest.Turn{Text: "Let me see.", Calls: []model.ToolCall{call("echo", `{"text":"one"}`)}},
		coretest.Say("First answer."),
		coretest.Turn{Text: "- Task: the notes", Usage: model.Usage{Input: 7, Output: 3}},
		coretest.Say("Third answer."),
	)
	if err := r.Compact(t.Context(), ""); !errors.Is(err, core.ErrShort) {
		t.Errorf("an empty conversation: %v", err)
	}
	r.submit(t, "first question")
	if err := r.Compact(t.Context(), "keep the echo"); err != nil {
		t.Fatal(err)
	}
	ask := r.model.Requests()[2]
	if text := sent(ask); !strings.Contains(text, "first question") || !strings.Contains(text, "[result of echo]") || !strings.Contains(text, "keep the echo") || len(ask.Tools) != 0 {
		t.Errorf("the request for the summary is\n%s", text)
	}
	if r.State() != core.StateIdle {
		t.Errorf("state %s", r.State())
	}
	r.submit(t, "second question")
	last := r.model.Requests()[3]
	text := sent(last)
	if !strings.HasPrefix(text, "user: <summary>") || !strings.Contains(text, "- Task: the notes") || strings.Contains(text, "Let me see.") || !strings.HasSuffix(text, "First answer.\nuser: second question") {
		t.Errorf("after it the model gets\n%s", text)
	}
	if last.System != "Be good." || len(last.Tools) != 1 {
		t.Errorf("prompt %q, %d tools", last.System, len(last.Tools))
	}
	if got := len(r.Messages()); got != 4 {
		t.Errorf("Messages returns %d", got)
	}
	lines := strings.Join(r.journal.Lines(), "\n")
	if !strings.Contains(lines, `"type":"compacted"`) || !strings.Contains(lines, "Let me see.") {
		t.Errorf("the journal is incomplete:\n%s", lines)
	}
	again := newRig(t, func(c *core.Config) { setup(c); c.Journal = r.journal }, coretest.Say("Fourth answer."))
	again.submit(t, "third question")
	if got := sent(again.model.Requests()[0]); got != text+"\nassistant: Third answer.\nuser: third question" {
		t.Errorf("the resumed session sends\n%s\nafter\n%s", got, text)
	}
}

// TestCompactFails: a failure changes nothing.
func TestCompactFails(t *testing.T) {
	r := newRig(
		t, func(c *core.Config) { c.Profile = window(0) },
		coretest.Say("one"), coretest.Turn{Err: &model.Error{Code: model.CodeNetwork, Message: "gone"}}, coretest.Say(""), coretest.Say(" "), coretest.Say("two"),
	)
	r.submit(t, "first")
	for _, want := range []string{"gone", "the answer is empty"} {
		if err := r.Compact(t.Context(), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	r.submit(t, "second")
	if got, want := sent(r.model.Requests()[4]), "user: first\nassistant: one\nuser: second"; got != want {
		t.Errorf("the model gets\n%s\nwant\n%s", got, want)
	}
}

// TestAutomaticCompaction: a session compacts when the window is nearly full, and
// when the provider says that it is.
func TestAutomaticCompaction(t *testing.T) {
	full := coretest.Turn{Text: "one", Usage: model.Usage{Input: 900, Output: 20}}
	overflow := coretest.Turn{Err: &model.Error{Code: model.CodeContextLength, Message: "too long"}}
	limit := func(at float64) func(*core.Config) {
		return func(c *core.Config) { c.Profile, c.Limits.CompactAt = window(1000), at }
	}
	r := newRig(t, limit(0.85), full, coretest.Say("the notes"), coretest.Say("two"))
	r.submit(t, "first")
	r.submit(t, "second")
	if got := sent(r.model.Requests()[2]); !strings.Contains(got, "the notes") || !strings.HasSuffix(got, "user: second") {
		t.Errorf("nearly full: the model gets\n%s", got)
	}
	r = newRig(t, limit(0.85), coretest.Say("one"), overflow, coretest.Say("the notes"), coretest.Say("two"))
	r.submit(t, "first")
	out := r.submit(t, "second")
	if got := sent(r.model.Requests()[3]); out.Stop != core.StopDone || !strings.Contains(got, "the notes") {
		t.Errorf("too long: %s, the model gets\n%s", out.Stop, got)
	}
	r = newRig(t, limit(0.85), coretest.Say("one"), overflow, coretest.Say("the notes"), overflow)
	r.submit(t, "first")
	if out, err := r.Submit(t.Context(), core.TextInput("second")); err == nil || out.Stop != core.StopContextLength || r.State() != core.StateUnfinished {
		t.Errorf("still too long: %s, %v, %s", out.Stop, err, r.State())
	}
	r = newRig(t, limit(0), full, coretest.Say("two"))
	r.submit(t, "first")
	r.submit(t, "second")
	if n := len(r.model.Requests()); n != 2 {
		t.Errorf("compacted although disabled: %d requests", n)
	}
}

// TestIdleEventMeansIdle: a host that submits on the idle event is not refused.
func TestIdleEventMeansIdle(t *testing.T) {
	const inputs = 50
	turns := make([]coretest.Turn, inputs)
	for i := range turns {
		turns[i] = coretest.Say("ok")
	}
	r := newRig(t, nil, turns...)
	left := inputs - 1
	done := make(chan error, 1)
	go func() {
		for e, err := range r.Events(t.Context(), 0) {
			if err == nil {
				if _, idle := e.Body.(event.Idle); !idle {
					continue
				}
				if left--; left >= 0 {
					_, err = r.Submit(t.Context(), core.TextInput("again"))
				}
			}
			if err != nil || left < 0 {
				done <- err
				return
			}
		}
	}()
	r.submit(t, "first")
	if err := <-done; err != nil {
		t.Errorf("Submit on the idle event: %v", err)
	}
}

// TestTokenLimitBeforeTools: the calls of the answer that crosses a limit do not
// run, and have results.
func TestTokenLimitBeforeTools(t *testing.T) {
	ran := 0
	count := tool("count", func(context.Context, *core.Call, note) (core.Result, error) {
		ran++
		return core.TextResult("ran"), nil
	})
	r := newRig(t, func(c *core.Config) { c.Tools, c.Limits.MaxSessionTokens = core.StaticTools(count), 100 },
		coretest.Turn{Calls: []model.ToolCall{call("count", `{"text":"x"}`), call("count", `{"text":"y"}`)}, Usage: model.Usage{Input: 90, Output: 20}})
	if out := r.submit(t, "go"); out.Stop != core.StopTokenLimit || ran != 0 {
		t.Errorf("stopped with %s after %d calls", out.Stop, ran)
	}
	messages := r.Messages()
	if last := messages[len(messages)-1]; last.Role != model.RoleTool || len(last.Parts) != 2 || !strings.Contains(last.Parts[0].(model.ToolResult).Content.Text(), "not run") {
		t.Errorf("the conversation ends with %+v", last)
	}
}

// TestLoopDetectionSpansInputs: so does the window of a resumed session.
func TestLoopDetectionSpansInputs(t *testing.T) {
	journal := &coretest.MemoryJournal{}
	var turns []coretest.Turn
	for range 4 {
		turns = append(turns, coretest.CallTools(call("echo", `{"text":"x"}`)), coretest.Say("ok"))
	}
	change := func(c *core.Config) {
		c.ID, c.Journal, c.Tools, c.Limits.LoopWindow = "s", journal, core.StaticTools(echo), 4
	}
	r := newRig(t, change, turns...)
	for range 3 {
		r.submit(t, "once more")
	}
	if found := coretest.Bodies[event.LoopDetection](r.ended(t)); len(found) != 0 {
		t.Errorf("found %+v after three calls", found)
	}
	r = newRig(t, change, turns[:2]...)
	r.submit(t, "once more")
	if found := coretest.Bodies[event.LoopDetection](r.ended(t)); len(found) != 1 {
		t.Errorf("found %+v after four calls", found)
	}
}

// TestTimeoutNamesToolAndLimit: also when the tool reports only that it was
// cancelled.
func TestTimeoutNamesToolAndLimit(t *testing.T) {
	slow := core.NewTool(core.ToolDefinition{Name: "slow", Timeout: 10 * time.Millisecond}, nil,
		func(ctx context.Context, _ *core.Call, _ note) (core.Result, error) {
			<-ctx.Done()
			return core.Result{}, ctx.Err()
		})
	r := newRig(t, withTools(slow), coretest.CallTools(call("slow", `{"text":"x"}`)), coretest.Say("ok"))
	r.submit(t, "go")
	got := results(r.model.Requests()[1])
	if text := got[0].Content.Text(); !strings.Contains(text, "slow") || !strings.Contains(text, "timed out after 10ms") || strings.Contains(text, "context") {
		t.Errorf("the model got %q", text)
	}
}

// TestAppendComesLast: the user's own text is the end of the system prompt.
func TestAppendComesLast(t *testing.T) {
	r := newRig(t, func(c *core.Config) {
		c.Profile.Prompt = func(context.Context, core.PromptRequest) (string, error) { return "Base.\n", nil }
		c.Profile.Append = "\nBe kind.\n\n"
	}, coretest.Say("ok"))
	r.submit(t, "go")
	if got := r.model.Requests()[0].System; got != "Base.\n\nBe kind.\n" {
		t.Errorf("the prompt is %q", got)
	}
}
