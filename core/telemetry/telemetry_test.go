package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// place records the span that a tool runs in.
type place struct{ got []tracecontext.Span }

func (p *place) tool(name string, run func(context.Context)) core.Tool {
	return core.NewTool(core.ToolDefinition{Name: name}, nil, func(ctx context.Context, _ *core.Call, _ struct{}) (core.Result, error) {
		p.got = append(p.got, tracecontext.From(ctx))
		if run != nil {
			run(ctx)
		}
		return core.TextResult("done"), nil
	})
}

func session(t *testing.T, cfg core.Config, turns ...coretest.Turn) *core.Session {
	t.Helper()
	cfg.Provider, cfg.Env = coretest.Model(turns...), env.NewMemory("/work", nil)
	if cfg.Policy == nil {
		cfg.Policy = coretest.AllowAll
	}
	cfg.Clock = coretest.Clock()
	s, err := core.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func submit(t *testing.T, s *core.Session, text string) {
	t.Helper()
	if _, err := s.Submit(t.Context(), core.TextInput(text)); err != nil {
		t.Fatal(err)
	}
}

func call(name string) model.ToolCall { return model.ToolCall{ID: "c-" + name, Name: name, Args: "{}"} }

// recorded returns what a reader of the log gets.
func recorded(t *testing.T, j *coretest.MemoryJournal) (events []event.Event) {
	t.Helper()
	for e, err := range j.Replay(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back event.Event
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		events = append(events, back)
	}
	return events
}

// tree renders spans by their parents.
func tree(spans []*telemetry.Span) string {
	var b strings.Builder
	known := map[string]bool{}
	for _, s := range spans {
		known[s.ID] = true
	}
	var below func(parent, indent string)
	below = func(parent, indent string) {
		for _, s := range spans {
			if s.Parent == parent || parent == "" && !known[s.Parent] {
				fmt.Fprintf(&b, "%s%s %s\n", indent, s.Name, s.Error)
				below(s.ID, indent+"  ")
			}
		}
	}
	below("", "")
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

func attr(s *telemetry.Span, key string) any {
	i := slices.IndexFunc(s.Attributes, func(a telemetry.Attr) bool { return a.Key == key })
	if i < 0 {
		return nil
	}
	return s.Attributes[i].Value
}

func find(t *testing.T, spans []*telemetry.Span, name string) *telemetry.Span {
	t.Helper()
	i := slices.IndexFunc(spans, func(s *telemetry.Span) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no span %q in\n%s", name, tree(spans))
	}
	return spans[i]
}

func TestLiveAndRecorded(t *testing.T) {
	var parent, child coretest.MemoryJournal
	var places place
	var sub *core.Session
	tools := core.StaticTools(places.tool("look", nil), places.tool("spawn", func(ctx context.Context) {
		sub = session(t, core.Config{ID: "child", Parent: "root", AgentPath: []string{"scout"}, Journal: &child}, coretest.Say("Seen."))
		if _, err := sub.Submit(ctx, core.TextInput("scout")); err != nil {
			t.Error(err)
		}
	}))
	s := session(t, core.Config{ID: "root", Version: "1.0", Tools: tools, Journal: &parent},
		coretest.CallTools(call("look"), call("missing")), coretest.CallTools(call("spawn")), coretest.Say("Done."), coretest.Say("Again."))
	live := coretest.Collect(t, s, nil)
	submit(t, s, "go")
	below := coretest.Collect(t, sub, nil)
	submit(t, s, "and again")
	if err := errors.Join(sub.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	spans := telemetry.Spans(append(live.Drain(t), below.Drain(t)...))
	want := `invoke_agent agent
  chat fake-1
  execute_tool look
  execute_tool missing NOT_FOUND
  chat fake-1
  execute_tool spawn
    invoke_agent scout
      chat fake-1
  chat fake-1
invoke_agent agent
  chat fake-1
`
	if got := tree(spans); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	stored := telemetry.Spans(append(recorded(t, &parent), recorded(t, &child)...))
	if !reflect.DeepEqual(stored, spans) {
		t.Errorf("recorded\n%s\nlive\n%s", tree(stored), tree(spans))
	}
	look, spawn := find(t, spans, "execute_tool look"), find(t, spans, "execute_tool spawn")
	if !reflect.DeepEqual(places.got, []tracecontext.Span{{Trace: look.Trace, ID: look.ID}, {Trace: spawn.Trace, ID: spawn.ID}}) {
		t.Errorf("the tools ran in %v", places.got)
	}
	runs := slices.DeleteFunc(slices.Clone(spans), func(s *telemetry.Span) bool { return s.Name != "invoke_agent agent" })
	first, second := runs[0], runs[1]
	if second.Trace == first.Trace || second.Link == nil || second.Link.Trace != first.Trace || second.Link.ID != first.ID {
		t.Errorf("the second input %+v does not link to the first %+v", second, first)
	}
}

func TestResumedLinksToFormerTrace(t *testing.T) {
	var journal coretest.MemoryJournal
	s := session(t, core.Config{ID: "root", Journal: &journal}, coretest.Say("One."))
	submit(t, s, "one")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	former := telemetry.Spans(recorded(t, &journal))[0]
	again := session(t, core.Config{ID: "root", Journal: &journal}, coretest.Say("Two."))
	var live []*telemetry.Span
	b := telemetry.NewBuilder(func(s *telemetry.Span) { live = append(live, s) })
	submit(t, again, "two")
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for e := range again.Events(t.Context(), again.Opened()-1) {
		b.Add(e)
	}
	run := find(t, live, "invoke_agent agent")
	if run.Link == nil || run.Link.Trace != former.Trace || run.Link.ID != former.ID || run.Trace == former.Trace {
		t.Errorf("%+v does not link to %+v", run, former)
	}
	all := telemetry.Spans(recorded(t, &journal))
	if !slices.ContainsFunc(all, func(s *telemetry.Span) bool { return reflect.DeepEqual(s, run) }) {
		t.Errorf("the log has no span %+v", run)
	}
}

func TestCallerIsParent(t *testing.T) {
	s := session(t, core.Config{ID: "root"}, coretest.Say("One."))
	caller := tracecontext.Span{Trace: "0af7651916cd43dd8448eb211c80319c", ID: "b7ad6b7169203331"}
	live := coretest.Collect(t, s, nil)
	if _, err := s.Submit(tracecontext.With(t.Context(), caller), core.TextInput("go")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	run := telemetry.Spans(live.Drain(t))[0]
	if run.Trace != caller.Trace || run.Parent != caller.ID || run.Link != nil {
		t.Errorf("%+v is not below %v", run, caller)
	}
}

// asker takes its time.
type asker struct{ choice core.Choice }

func (a asker) Ask(context.Context, core.Question) (core.Answer, error) {
	return core.Answer{Choice: a.choice}, nil
}

func TestQuestionApartFromTool(t *testing.T) {
	s := session(t, core.Config{ID: "root", Policy: coretest.AskAll, Asker: asker{core.ChoiceDeny}, Tools: core.StaticTools((&place{}).tool("look", nil))},
		coretest.CallTools(call("look")), coretest.Say("No."))
	live := coretest.Collect(t, s, nil)
	submit(t, s, "go")
	_ = s.Close()
	spans := telemetry.Spans(live.Drain(t))
	tool, question := find(t, spans, "execute_tool look"), find(t, spans, "question permission")
	if question.Parent != tool.ID || attr(question, "agent.question.choice") != "deny" || question.Waited <= 0 {
		t.Errorf("question %+v", question)
	}
	if tool.Error != "PERMISSION_DENIED" || tool.Decision != "deny" || tool.Decider != "person" || tool.Waited <= 0 || tool.Waited >= tool.Took() {
		t.Errorf("tool %+v", tool)
	}
	if took := attr(tool, "agent.tool.duration"); took != (tool.Took() - tool.Waited).Seconds() {
		t.Errorf("the tool took %v s without the question, of %s and %s", took, tool.Took(), tool.Waited)
	}
}

func at(ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC) }

// log gives events their numbers and times.
func log(bodies ...event.Body) (events []event.Event) {
	for i, b := range bodies {
		e := event.Event{V: 1, Seq: event.Seq(i + 1), Time: at(10 * i), Session: "s", Body: b}
		switch b.(type) {
		case event.ToolUse, event.Permission, event.ToolResult:
			e.Call = "c1"
		}
		events = append(events, e)
	}
	return events
}

func TestChat(t *testing.T) {
	spans := telemetry.Spans(log(
		event.SessionStart{Provider: "openai", Model: "gpt"}, event.SkillActivated{Name: "pdf", Scope: "user", By: "name", Size: 20},
		event.User{}, event.LLMStart{Provider: "openai", Model: "gpt", Server: "https://api.example.com/v1"},
		event.LLMRetry{Attempt: 1, Code: model.CodeRateLimited, WaitMS: 500, Provider: "gemini", Model: "flash"}, event.MessageStart{},
		event.Message{ResponseID: "r1"},
		event.LLMEnd{Provider: "gemini", Model: "flash", FirstMS: 250, Stop: model.StopMaxTokens, Usage: model.Usage{Input: 9, CachedInput: 4, CacheWrite: 2, Output: 3, Reasoning: 1}},
		event.LLMStart{Provider: "openai", Model: "gpt"}, event.LLMEnd{Provider: "openai", Model: "gpt", Error: "too many", Code: model.CodeRateLimited},
		event.Error{Code: "RATE_LIMITED", Message: "too many"}, event.Idle{State: "idle", Stop: "error"}))
	if got, want := tree(spans), "invoke_agent agent RATE_LIMITED\n  activate_skill pdf\n  chat gpt\n  chat gpt RATE_LIMITED\n"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	chat := find(t, spans, "chat gpt")
	for key, want := range map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gpt", "gen_ai.response.model": "flash",
		"gen_ai.response.id": "r1", "gen_ai.response.finish_reasons": []string{"length"}, "gen_ai.response.time_to_first_chunk": 0.25,
		"gen_ai.usage.input_tokens": int64(9), "gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.usage.cache_creation.input_tokens": int64(2),
		"gen_ai.usage.output_tokens": int64(3), "gen_ai.usage.reasoning.output_tokens": int64(1), "gen_ai.conversation.id": "s",
		"server.address": "api.example.com", "server.port": int64(443),
	} {
		if got := attr(chat, key); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	if len(chat.Moments) != 2 || chat.Moments[0].Name != "gen_ai.retry" || chat.Moments[1].Name != "gen_ai.first_token" {
		t.Errorf("moments %v", chat.Moments)
	}
}

func TestCompactionAndStart(t *testing.T) {
	spans := telemetry.Spans(log(
		event.SessionStart{}, event.SourceStarted{Kind: "mcp", Name: "files", DurationMS: 4}, event.User{},
		event.LLMStart{Model: "gpt", Purpose: "compaction"}, event.LLMEnd{Model: "gpt"}, event.Compacted{Before: 90, After: 10},
		event.SourceStarted{Kind: "plugin", Name: "web", DurationMS: 3, Error: "no such file"}, event.Idle{Stop: "done"},
		event.LLMStart{Model: "gpt", Purpose: "compaction"}, event.LLMEnd{Model: "gpt", Error: "down"}))
	want := "invoke_agent agent\n  start files\n  compaction\n    chat gpt\n  start web START_FAILED\n  compaction UNKNOWN\n    chat gpt UNKNOWN\n"
	if got := tree(spans); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParkedAndKilled(t *testing.T) {
	question := event.Question{QID: "q1", Kind: "permission", Tool: "shell"}
	parked := telemetry.Spans(log(
		event.SessionStart{}, event.User{}, event.LLMStart{Model: "m"}, event.LLMEnd{}, event.ToolUse{Name: "shell"}, question, event.Idle{State: "parked", Stop: "parked"},
		event.Answer{QID: "q1", Choice: "once"}, event.Permission{Tool: "shell", Decision: "allow"}, event.ToolResult{Name: "shell"}, event.LLMStart{Model: "m"}, event.LLMEnd{}, event.Idle{Stop: "done"}))
	want := "invoke_agent agent\n  chat m\n  execute_tool shell\n    question permission\n  invoke_agent agent\n    execute_tool shell\n    chat m\n"
	if got := tree(parked); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	killed := telemetry.Spans(log(event.SessionStart{}, event.User{}, event.ToolUse{Name: "shell"}, event.SessionStart{Resumed: true},
		event.ToolResult{Name: "shell", IsError: true, Code: "CANCELLED"}, event.User{}, event.LLMStart{Model: "m"}))
	want = "invoke_agent agent interrupted\n  execute_tool shell interrupted\ninvoke_agent agent interrupted\n  chat m interrupted\n"
	if got := tree(killed); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if end := killed[0].End; end != at(20) {
		t.Errorf("the killed run ends at %s", end)
	}
}

func TestContent(t *testing.T) {
	secret := event.ToolResult{Name: "read_file", Content: model.TextParts("KEY=1")}
	events := log(event.SessionStart{}, event.User{Content: model.TextParts("read it")}, event.ToolUse{Name: "read_file", Args: `{"file_path":".env"}`}, secret, event.Idle{Stop: "done"})
	events[3].Record = secret.Unrecorded([]string{"/work/.env"})
	for _, content := range []bool{false, true} {
		var spans []*telemetry.Span
		b := telemetry.NewBuilder(func(s *telemetry.Span) { spans = append(spans, s) })
		b.Content = content
		for _, e := range events {
			b.Add(e)
		}
		got := fmt.Sprint(spans[0].Content, spans[1].Content)
		if strings.Contains(got, "KEY") || content != strings.Contains(got, "read it") || content != strings.Contains(got, "[5 bytes are not recorded") {
			t.Errorf("content %t: %s", content, got)
		}
	}
}

func TestOpen(t *testing.T) {
	b := telemetry.NewBuilder(func(*telemetry.Span) {})
	for _, e := range log(event.SessionStart{}, event.User{}, event.LLMStart{Model: "gpt"}) {
		b.Add(e)
	}
	open := b.Open(at(500))
	if len(open) != 2 || open[0].Name != "chat gpt" || open[1].Kind != telemetry.KindRun || open[1].End != at(500) {
		t.Errorf("open %+v", open)
	}
}

func BenchmarkAdd(b *testing.B) {
	events := log(event.SessionStart{}, event.User{}, event.LLMStart{Model: "gpt", Server: "https://api.example.com/v1"}, event.MessageStart{}, event.Message{},
		event.LLMEnd{Model: "gpt", FirstMS: 3, Usage: model.Usage{Input: 3, Output: 4}}, event.ToolUse{Name: "shell"}, event.Permission{Decision: "allow"},
		event.ToolResult{Content: model.TextParts("done")}, event.Idle{Stop: "done"})
	builder := telemetry.NewBuilder(func(*telemetry.Span) {})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		builder.Add(events[i%len(events)])
	}
}

// TestBead: a bead is a span, with its states, warnings and criteria as moments.
func TestBead(t *testing.T) {
	var spans []telemetry.Span
	b := telemetry.NewBuilder(func(s *telemetry.Span) { spans = append(spans, *s) })
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, body := range []event.Body{
		event.TaskStart{Task: "t"},
		event.BeadStart{Task: "t", Bead: 1, Child: "s"},
		event.TaskState{Task: "t", Bead: 1, State: "verifying"},
		event.TaskState{Task: "t", State: "running"},
		event.Budget{Task: "t", Bead: 1, Used: 4, Max: 9},
		event.Budget{Task: "t", Bead: 1, Used: 5, Max: 9, Warning: 50},
		event.Criterion{Bead: 1, Name: "check", Status: "fail"},
		event.Guard{Bead: 1, Kind: "test-changed", Action: "fail"},
		event.BeadEnd{Bead: 1, State: "retrying", Result: event.BeadResult{Used: 7}},
		event.BeadStart{Task: "t", Bead: 2},
		event.BeadEnd{Bead: 2, State: "committed"},
		event.BeadStart{Task: "t", Bead: 3},
	} {
		b.Add(event.Event{V: 1, Seq: event.Seq(i + 1), Session: "t", Time: began.Add(time.Duration(i) * time.Second), Body: body})
	}
	b.Close()
	var got []string
	for _, s := range spans {
		got = append(got, fmt.Sprintf("%s %s %d %s", s.Name, s.Error, len(s.Moments), s.End.Sub(s.Start)))
	}
	if want := []string{"bead 1 CRITERIA_FAILED 4 7s", "bead 2  0 1s", "bead 3 interrupted 0 0s"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestToolAsks is a question that a tool asks while it runs: only its tool is known.
func TestToolAsks(t *testing.T) {
	question := event.Question{QID: "q1", Kind: "choice", Tool: "ask_user"}
	spans := telemetry.Spans(log(event.SessionStart{}, event.User{}, event.ToolUse{Name: "ask_user"}, question, event.Answer{QID: "q1", Choice: "a"}, event.ToolResult{Name: "ask_user"}, event.Idle{State: "idle", Stop: "done"}))
	if got, want := tree(spans), "invoke_agent agent\n  execute_tool ask_user\n    question choice\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	two := log(event.SessionStart{}, event.User{}, event.ToolUse{Name: "ask_user"}, event.ToolUse{Name: "ask_user"}, question)
	two[3].Call = "c2"
	if got, want := tree(telemetry.Spans(two)), "invoke_agent agent interrupted\n  execute_tool ask_user interrupted\n  execute_tool ask_user interrupted\n  question choice interrupted\n"; got != want {
		t.Errorf("of two calls: got\n%s\nwant\n%s", got, want)
	}
}
