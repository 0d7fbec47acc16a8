package insight_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// known prices everything at 1/64 of a dollar for a token, but nothing of the model novel.
var known = insight.Facts{
	Price: func(_, name string, u model.Usage) (float64, bool) {
		return float64(u.Total()) / 64, name != "novel"
	},
	Window: func(_, name string) int { return map[string]int{"m": 1000}[name] },
}

// of is an event of a call.
type of struct {
	event.Body
	call string
}

// save writes a session whose events are 100 ms apart.
func save(tb testing.TB, dir, id string, at time.Time, bodies ...event.Body) {
	tb.Helper()
	j, err := store.Create(dir, id, store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for i, b := range bodies {
		e := event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: at.Add(time.Duration(i) * 100 * time.Millisecond), Session: id, Body: b}
		if c, ok := b.(of); ok {
			e.Call, e.Body = c.call, c.Body
		}
		if err := j.Append(tb.Context(), e); err != nil {
			tb.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, id+".jsonl")
	if err := os.Chtimes(path, at, at); err != nil {
		tb.Fatal(err)
	}
}

func answer(name string, in, cached, out int) event.LLMEnd {
	return event.LLMEnd{Provider: "local", Model: name, Usage: model.Usage{Input: in, CachedInput: cached, Output: out}, LatencyMS: 40}
}

// day is a session with a failed command, a denied edit, an approved one and a skill.
func day(name string) []event.Body {
	question := func(qid string) event.Question {
		return event.Question{QID: qid, Kind: "permission", Tool: "edit_file", Offers: []event.Offer{{Rules: []string{"fs-write(/w/a)"}}, {Rules: []string{"fs-write(/w/**)"}}}}
	}
	return []event.Body{
		event.SessionStart{Cwd: "/w"},
		event.SkillActivated{Name: "debug"},
		event.User{Content: model.TextParts("Fix it")},
		event.Prompt{Text: strings.Repeat("long ", 1000)},
		answer(name, 500, 250, 20),
		event.Message{Content: model.Parts{model.ToolCall{ID: "c1", Name: "shell"}, model.ToolCall{ID: "c2", Name: "edit_file"}, model.ToolCall{ID: "c3", Name: "edit_file"}}},
		of{event.ToolResult{Name: "shell", Content: model.TextParts("12345678"), DurationMS: 70, Structured: json.RawMessage(`{"exitCode":2}`)}, "c1"},
		of{question("q1"), "c2"},
		of{event.Answer{QID: "q1", Choice: "once"}, "c2"},
		of{event.ToolResult{Name: "edit_file", DurationMS: 130}, "c2"},
		of{question("q2"), "c3"},
		of{event.Answer{QID: "q2", Choice: "deny"}, "c3"},
		of{event.ToolResult{Name: "edit_file", IsError: true, Code: "PERMISSION_DENIED", DurationMS: 105}, "c3"},
		event.Permission{Tool: "shell", Decision: "deny", Decider: "headless", Reason: `mode default asks before running make; the rule shell(make) would allow it; the session is non-interactive`},
		event.Permission{Tool: "shell", Decision: "deny", Decider: "policy", Reason: "a deny rule"},
		answer(name, 900, 750, 50),
		event.Idle{Stop: "done"},
		event.User{Content: model.TextParts("Thanks")},
		answer(name, 100, 0, 1),
		event.Idle{Stop: "done"},
		event.SessionEnd{},
	}
}

func read(tb testing.TB, dir string, days int) *insight.Report {
	tb.Helper()
	r, err := insight.Read(tb.Context(), dir, days, now, known)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, dir, "one", now.Add(-time.Hour), day("m")...)
	save(t, dir, "two", now.Add(-time.Hour), day("novel")...)
	save(t, dir, "old", now.Add(-50*24*time.Hour), day("m")...)
	save(t, dir, "empty", now.Add(-time.Hour), event.SessionStart{Cwd: "/w"})
	r := read(t, dir, 30)
	if got, want := r.Total, (insight.Work{Sessions: 3, Calls: 6, Millis: 2 * 1600, Usage: model.Usage{Input: 3000, CachedInput: 2000, Output: 142}, CostUSD: 1571.0 / 64, Unpriced: 3}); got != want {
		t.Errorf("total %+v, want %+v", got, want)
	}
	if len(r.Models) != 2 || r.Models[0].Name != "local/m" || r.Models[0].Cost() != "$24.55" || r.Models[1].Cost() != "unknown" || r.Models[1].Millis != 120 {
		t.Errorf("models %+v", r.Models)
	}
	if r.Total.Cost() != "$24.55 and 3 calls without a known price" {
		t.Errorf("cost %q", r.Total.Cost())
	}
	if len(r.Projects) != 1 || r.Projects[0].Name != "/w" || r.Projects[0].Sessions != 3 {
		t.Errorf("projects %+v", r.Projects)
	}
	if s := r.Skills; len(s) != 1 || s[0].Name != "debug" || s[0].Sessions != 2 || s[0].Calls != 4 || s[0].Usage.Output != 140 {
		t.Errorf("skills are the inputs for which they were activated: %+v", s)
	}
	shell := slices.IndexFunc(r.Tools, func(t insight.Tool) bool { return t.Name == "shell" })
	if got := fmt.Sprintf("%+v", r.Tools[shell]); got != "{Name:shell Calls:2 Failed:2 Denied:0 Millis:140 Slowest:70 Tokens:4 Failures:map[exit code:2]}" {
		t.Error(got)
	}
	if got := fmt.Sprintf("%+v", r.Tools[1-shell]); got != "{Name:edit_file Calls:4 Failed:2 Denied:2 Millis:70 Slowest:30 Tokens:0 Failures:map[PERMISSION_DENIED:2]}" {
		t.Errorf("the wait for an answer is not the tool's time: %s", got)
	}
	if got := fmt.Sprintf("%+v", r.Requests); got != "[{Tool:edit_file Rules:[fs-write(/w/a)] Asked:4 Approved:2 Millis:400} {Tool:shell Rules:[shell(make)] Asked:2 Approved:0 Millis:0}]" {
		t.Error(got)
	}
	if got := fmt.Sprintf("%+v", r.Context); got != "{Sessions:1 Unknown:1 Average:0.95 Most:0.95 Near:1 Compact:0}" {
		t.Error(got)
	}
	if r.Wait != 400 {
		t.Errorf("waited %d ms", r.Wait)
	}
	if all := read(t, dir, 0); all.Total.Sessions != 4 || all.Period() != "All sessions" {
		t.Errorf("all: %+v", all.Total)
	}
}

// TestFork checks that what a fork copied from its origin is not counted twice.
func TestFork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, dir, "one", now, day("m")...)
	if err := (store.Dirs{Sessions: dir, Contexts: t.TempDir()}).Fork(t.Context(), "one", "two", 0); err != nil {
		t.Fatal(err)
	}
	if r := read(t, dir, 0); r.Total.Calls != 3 || r.Total.Sessions != 1 {
		t.Errorf("total %+v", r.Total)
	}
}

// TestDamaged checks that a damaged session counts as far as it can be read, by name.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, dir, "one", now, day("m")...)
	f, err := os.OpenFile(filepath.Join(dir, "one.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("nonsense\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := read(t, dir, 0)
	if !slices.Equal(r.Damaged, []string{"one"}) || r.Total.Calls != 3 {
		t.Errorf("damaged %q, %+v", r.Damaged, r.Total)
	}
	for _, table := range r.Tables() {
		for _, row := range table.Rows {
			if len(row) != len(table.Head) {
				t.Errorf("%s: %q has not the columns %q", table.Title, row, table.Head)
			}
		}
	}
}

// TestNothing checks a directory that does not exist.
func TestNothing(t *testing.T) {
	t.Parallel()
	if r := read(t, filepath.Join(t.TempDir(), "none"), 30); r.Total.Sessions != 0 {
		t.Errorf("%+v", r.Total)
	}
}

// BenchmarkRead adds up sessions of ten rounds.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	var bodies []event.Body
	for range 10 {
		bodies = append(bodies, day("m")...)
	}
	const sessions = 500
	for i := range sessions {
		save(b, dir, fmt.Sprint("s", i), now, bodies...)
	}
	for b.Loop() {
		read(b, dir, 30)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/sessions, "µs/session")
}
