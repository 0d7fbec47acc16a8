package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
)

// planResult is a result of update_plan: each step is "x done", "> now" or
// "- later".
func planResult(t testing.TB, why string, steps ...string) event.ToolResult {
	t.Helper()
	p := event.Plan{Explanation: why}
	for _, s := range steps {
		status := map[byte]event.PlanStatus{'x': event.StepCompleted, '>': event.StepInProgress, '-': event.StepPending}[s[0]]
		p.Steps = append(p.Steps, event.PlanStep{Step: s[2:], Status: status})
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return event.ToolResult{Name: event.PlanTool, Content: model.TextParts("The plan is updated."), Structured: data}
}

func TestPlanGolden(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 80} {
		s := newScene(painter{colors: true}, width, "/w")
		for i, b := range []event.ToolResult{
			planResult(t, "", "> read the code", "- change it, and everything else that depends on what it said before", "- run the tests"),
			planResult(t, "", "> read the code", "- change it, and everything else that depends on what it said before", "- run the tests"),
			planResult(t, "the tests \x1b[31mfailed", "x read the code", "x change it", "> look at the failure", "- run the tests"),
			planResult(t, "", "x a", "x b", "x c", "x d", "x e", "> f", "- g"),
			{Name: event.PlanTool, IsError: true, Content: model.TextParts("2 steps are in_progress; at most one can be.")},
		} {
			id := fmt.Sprint(i)
			s.apply(event.Event{Call: id, Body: event.ToolUse{Name: event.PlanTool, Args: `{"plan":[]}`}})
			s.apply(event.Event{Call: id, Body: b})
		}
		lines := s.take()
		checkGolden(t, fmt.Sprintf("plan-%d", width), lines)
		for _, l := range lines {
			if w := ansi.StringWidth(l); w > width {
				t.Errorf("a line is %d columns wide, want at most %d: %q", w, width, l)
			}
		}
		if got, want := s.stepNow(), "6/7 f"; got != want {
			t.Errorf("the status says %q, want %q", got, want)
		}
	}
}

// TestResumeShowsThePlan checks that the last plan is shown, unless it is complete.
func TestResumeShowsThePlan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		last []string
		want string
	}{
		{"work is left", []string{"x one", "> two"}, "≡ plan · 1 of 2 done\n  ✓ one\n  ▸ two"},
		{"all is done", []string{"x one", "x two"}, ""},
	} {
		d := newDriver(newHost(t.Context(), Options{Session: newFakeSession(), Asker: NewAsker()}), newScene(painter{}, 80, "/w"))
		d.handle(pastMsg{events: []event.Event{
			{Body: event.User{Content: model.TextParts("do it")}},
			{Body: planResult(t, "", "> one", "- two")},
			{Body: planResult(t, "", tt.last...)},
		}})
		got := strings.Join(d.scene.take(), "\n")
		if n := strings.Count(got, "≡"); !strings.Contains(got, tt.want) || n != strings.Count(tt.want, "≡") {
			t.Errorf("%s: %d plans in\n%s\nwant %q", tt.name, n, got, tt.want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	long := make([]string, 2_100)
	for i := range long {
		long[i] = fmt.Sprintf("line %d.", i)
	}
	file := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(file, []byte("first\n"+strings.Repeat("x", 5<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	diff, _ := json.Marshal("--- a/x\n+++ b/x\n@@ -1,1 +1,40 @@\n" + strings.Repeat("+new line\n", 40))
	shell := func(text string, out *event.Output) event.ToolResult {
		return event.ToolResult{Name: "shell", Content: model.TextParts(text), Output: out, Structured: json.RawMessage(`{"exitCode":0}`)}
	}
	for _, tt := range []struct {
		name        string
		body        event.ToolResult
		want, lacks []string
	}{
		{"nothing hidden", shell("one\ntwo", nil), []string{""}, nil},
		{"an output", shell(strings.Join(long[:20], "\n"), nil), []string{"line 0.", "line 19."}, []string{"more line"}},
		{"a very long one", shell(strings.Join(long, "\n"), nil), []string{"line 1999.", "line 2099."}, []string{"more line"}},
		{"what the model got less of", shell("cut", &event.Output{Text: strings.Join(long[:30], "\n")}), []string{"line 0.", "line 29."}, nil},
		{"in a file", shell("cut", &event.Output{Path: file, Bytes: 5 << 20}), []string{"first", "… the full output is in " + file}, nil},
		{"a missing file", shell("what is left", &event.Output{Path: file + "-gone"}), []string{"what is left", "cannot read the full output"}, nil},
		{"a change", event.ToolResult{Name: "edit_file", Content: model.TextParts("edited"), Meta: map[string]json.RawMessage{"diff": diff}}, []string{"   1 +new line\n", "  40 +new line\n"}, []string{"more line"}},
		{"a file that was read", event.ToolResult{Name: "read_file", Content: model.TextParts(strings.Join(long[:5], "\n"))}, []string{"line 0.", "line 4."}, nil},
	} {
		s := newScene(painter{}, 80, "/w")
		s.apply(event.Event{Call: "1", Body: event.ToolUse{Name: "tool", Args: `{"command":"arg"}`}})
		s.apply(event.Event{Call: "1", Body: tt.body})
		s.take()
		var got string
		if s.more != nil {
			got = strings.Join(s.more.lines(s, 80), "\n") + "\n"
		}
		t.Run(tt.name, func(t *testing.T) {
			has(t, got, tt.want...)
			lacks(t, got, tt.lacks...)
		})
	}
	t.Run("reasoning", func(t *testing.T) {
		s := newScene(painter{}, 80, "/w")
		now := time.Unix(0, 0)
		s.now = func() time.Time { return now }
		s.apply(event.Event{Body: event.ReasoningDelta{Text: "first this,\nthen that"}})
		now = now.Add(3 * time.Second)
		s.apply(event.Event{Body: event.MessageDelta{Text: "Hello."}})
		s.take()
		has(t, s.more.title+"\n"+strings.Join(s.more.lines(s, 80), "\n"), "∴ thought for 3.0 s", "first this,", "then that")
	})
}

// TestLongTaskNotifies checks the notification after ten seconds.
func TestLongTaskNotifies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		notify Notify
		lasts  time.Duration
		line   string // written to the terminal
		plain  string
	}{
		{NotifyBell, 10 * time.Second, "\a", "\a"},
		{NotifyBell, 9999 * time.Millisecond, "", ""},
		{NotifyOSC9, time.Minute, "\x1b]9;agent finished\a", ""},
		{NotifyOff, time.Hour, "", ""},
		{"", time.Hour, "", ""},
	} {
		run := func(d *driver, s *fakeSession) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			d.scene.now = func() time.Time { return now }
			d.post = func(any) {}
			d.begin("go")
			<-s.submit
			now = now.Add(tt.lasts)
			d.handle(eventsMsg{{Body: event.Idle{State: "idle"}}})
			d.handle(eventsMsg{{Body: event.Result{Run: d.work.run, Outcome: string(core.StopDone)}}})
			if d.work.busy {
				t.Error("the work is not over")
			}
			d.close()
		}
		fresh := func() (*driver, *fakeSession) {
			s := newFakeSession()
			return newDriver(newHost(context.Background(), Options{Session: s, Asker: NewAsker(), Notify: tt.notify}), newScene(painter{}, 80, "/w")), s
		}

		d, s := fresh()
		var terminal safeBuffer
		l := &lineScreen{driver: d, screen: &screen{out: &terminal, width: 80, height: 24}, editor: newEditor(painter{}, nil), at: -1}
		l.alert = l.notify
		run(d, s)
		if got := terminal.String(); got != tt.line {
			t.Errorf("%q after %s: the terminal gets %q, want %q", tt.notify, tt.lasts, got, tt.line)
		}

		d, s = fresh()
		var out strings.Builder
		p := &plainScreen{driver: d, out: &out}
		p.alert = p.ring
		run(d, s)
		if got := out.String(); got != tt.plain {
			t.Errorf("%q after %s, line by line: %q, want %q", tt.notify, tt.lasts, got, tt.plain)
		}
	}
}

// TestPlainPlan: line by line a plan is read out once, with its question.
func TestPlainPlan(t *testing.T) {
	t.Parallel()
	s, asker := mustOpen(t, act{turns: []coretest.Turn{coretest.CallTools(toolCall("question", `{"kind":"confirm"}`)), coretest.Say("the end")}})
	asker.Review = func(context.Context, core.Question) *Review {
		return &Review{Markdown: true, Changes: []preview.Change{{Path: "plan.md", At: "plan.md", After: []byte("1. Write **c.txt**\n")}}}
	}
	r := startPlain(t, t.Context(), Options{Session: s, Asker: asker, Prompt: "plan it"})
	r.sees("1. Write c.txt", "(an empty line: no): ")
	r.send("y")
	r.sees("the end")
	if n := strings.Count(r.out.String(), "Write c.txt"); n != 1 {
		t.Errorf("the plan is there %d times:\n%s", n, r.out.String())
	}
}
