package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	benchpage "github.com/seed-009c0928/agent/cmd/agent/internal/bench/page"
	"github.com/seed-009c0928/agent/core/event"
)

// TestMain lets the test binary be the launcher, as bench itself is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == launchCommand {
		os.Exit(launchMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	server, err := startModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return &bench{model: server, temp: t.TempDir(), timeout: time.Minute}
}

func buildYardstick(t *testing.T) contestant {
	t.Helper()
	built, err := buildAll(t.Context(), options{skipAgent: true}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return built[0]
}

// TestYardstickDoesTheWork runs every scenario once with real processes; each
// run is checked by sample.verify.
func TestYardstickDoesTheWork(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scenarios' shell commands need sh")
	}
	b, yardstick := newBench(t), buildYardstick(t)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			one, err := b.once(t.Context(), s, yardstick)
			if err != nil {
				t.Fatal(err)
			}
			if one.wall <= 0 || one.peak <= 0 {
				t.Errorf("wall = %v, peak = %d bytes; want both measured", one.wall, one.peak)
			}
			for _, r := range summarize(s, []contestant{yardstick}, [][]sample{{one}}) {
				if r.results[0].median <= 0 {
					t.Errorf("%s = %v, want more than 0", r.label, r.results[0].median)
				}
			}
		})
	}
}

func TestFailedRunIsNoMeasurement(t *testing.T) {
	b, yardstick := newBench(t), buildYardstick(t)
	tests := []struct {
		name     string
		scenario scenario
		want     string
	}{
		{
			"tool call not executed",
			scenario{name: "x", calls: 1, tool: "read_file", arguments: readArguments, prepare: files(1, 1), proof: "other text"},
			"were not executed",
		},
		{
			"contestant fails",
			scenario{name: "x", calls: 1, tool: "read_file", arguments: readArguments},
			fileName(0),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.once(t.Context(), &tt.scenario, yardstick)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestVerifyCountsRequests(t *testing.T) {
	short := sample{traffic: traffic{arrivals: make([]time.Time, 2), proven: true}}
	if err := short.verify(&scenario{calls: 2}, true); err == nil {
		t.Error("verify accepted 2 requests for 2 tool calls and an answer")
	}
	if err := short.verify(&scenario{calls: 1}, true); err != nil {
		t.Errorf("verify: %v", err)
	}
}

// TestStoppedRunLeavesNoProcess cancels a run whose contestant waits for an
// answer: the connection breaks only when that process ends.
func TestStoppedRunLeavesNoProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a Windows process cannot be interrupted")
	}
	b, yardstick := newBench(t), buildYardstick(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
		close(gone)
	}))
	defer silent.Close()
	yardstick.arguments = func(_, prompt string) []string { return []string{silent.URL, modelName, prompt} }

	if _, err := b.once(ctx, &scenario{name: "x"}, yardstick); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	<-gone
}

func TestModelStreamsTheScenario(t *testing.T) {
	b := newBench(t)
	b.model.play(&scenario{calls: 1, tool: "shell", arguments: func(int) string { return arguments("command", "true") }, deltas: 2})
	post := func() (int, string) {
		t.Helper()
		resp, err := http.Post(b.model.endpoint()+"/chat/completions", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	for n, want := range [][]string{
		{`"name":"shell"`, `"finish_reason":"tool_calls"`, `"total_tokens":110`, "data: [DONE]\n\n"},
		{`"content":"word "`, `"finish_reason":"stop"`, "data: [DONE]\n\n"},
	} {
		status, body := post()
		if status != http.StatusOK {
			t.Fatalf("request %d: status %d", n, status)
		}
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("request %d: no %s in\n%s", n, part, body)
			}
		}
	}
	if status, _ := post(); status != http.StatusBadRequest {
		t.Errorf("a request beyond the scenario got status %d, want 400", status)
	}
	if seen := b.model.observed(); len(seen.arrivals) != 2 || seen.firstSize != 2 {
		t.Errorf("observed %d requests, the first of %d bytes; want 2 and 2", len(seen.arrivals), seen.firstSize)
	}
}

func TestTargetsAreJudgedByTheMedian(t *testing.T) {
	s := &scenario{name: "work", metrics: []metric{{"time", millis, 20, wall}}}
	contestants := []contestant{{name: "yardstick"}, {name: "agent", judged: true}}
	times := func(ms ...int) []sample {
		var samples []sample
		for _, v := range ms {
			samples = append(samples, sample{wall: time.Duration(v) * time.Millisecond})
		}
		return samples
	}
	tests := []struct {
		name             string
		yardstick, agent []sample
		missed           bool
	}{
		{"one slow run", times(1, 1, 1), times(10, 90, 11), false},
		{"slow median", times(1, 1, 1), times(10, 21, 22), true},
		{"slow yardstick", times(90, 90, 90), times(1, 2, 3), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := summarize(s, contestants, [][]sample{tt.yardstick, tt.agent})
			if got := anyMissed(rows); got != tt.missed {
				t.Errorf("missed = %t, want %t", got, tt.missed)
			}
			var out bytes.Buffer
			if err := printTable(&out, contestants, rows); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "MISSED"); got != tt.missed {
				t.Errorf("table marks the miss: %t, want %t\n%s", got, tt.missed, out.String())
			}
		})
	}
}

// TestCommandsProveTheirWork: a list without the session that must be in it is no
// measurement of the agent, nor is a session that was not resumed.
func TestCommandsProveTheirWork(t *testing.T) {
	list := &scenario{command: []string{"sessions", "list"}, proof: "0198"}
	if err := (sample{output: []byte("nothing")}).verify(list, true); err == nil {
		t.Error("verify accepted an empty list")
	}
	if err := (sample{output: []byte("nothing")}).verify(list, false); err != nil {
		t.Errorf("the yardstick lists nothing: %v", err)
	}
	resumed := &scenario{resume: longSession, proof: lastWords}
	one := sample{traffic: traffic{arrivals: make([]time.Time, 1)}}
	if err := one.verify(resumed, true); err == nil {
		t.Error("verify accepted a session that was not resumed")
	}
	agent := contestant{judged: true, arguments: func(_, prompt string) []string {
		return []string{"exec", "--permission-mode", "bypass", prompt}
	}}
	if got := agent.commandLine("", &scenario{confined: true})[2]; got != "workspace" {
		t.Errorf("the agent runs its commands in mode %q, want one with the sandbox", got)
	}
	if got := agent.commandLine("", resumed); !slices.Equal(got[:3], []string{"exec", "--resume", longSession}) {
		t.Errorf("the agent runs %q", got)
	}
}

// TestWrittenSessions reads back what the scenarios write.
func TestWrittenSessions(t *testing.T) {
	dir := t.TempDir()
	if err := compactedSession(dir, "/w"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, longSession+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var e event.Event
		if n%997 == 0 {
			if err := json.Unmarshal(line, &e); err != nil || e.Seq != event.Seq(n) {
				t.Fatalf("line %d: %v, %s", n, err, line)
			}
		}
	}
	if n < manyEvents-10 || n > manyEvents+10 {
		t.Errorf("%d events, want about %d", n, manyEvents)
	}
}

// TestPage: docs/performance.md has the rows that are measured, with their goals.
func TestPage(t *testing.T) {
	page := filepath.Join("..", "..", "..", "..", "docs", "performance.md")
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), benchpage.Start(mark))
	table, _, _ := strings.Cut(rest, benchpage.End(mark))
	var got, want []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) > 3 {
			got = append(got, cells[0]+" | "+cells[1])
		}
	}
	for _, s := range scenarios() {
		for _, m := range s.metrics {
			r := row{label: s.name + ": " + m.name, unit: m.unit, target: m.target}
			want = append(want, "| "+r.label+" | "+r.goal())
		}
	}
	if len(got) < 2 || !slices.Equal(got[2:], want) {
		t.Errorf("%s has other rows or goals than are measured: run go run ./cmd/agent/internal/bench -page docs/performance.md\ngot  %q\nwant %q", page, got, want)
	}
	copied := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(copied, []byte("before\n"+benchpage.Start(mark)+"old\n"+benchpage.End(mark)+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []row{{label: "work: time", unit: millis, target: 20, results: []result{{1, 1, 2}, {9, 8, 10}}}}
	if err := writePage(copied, "a machine", []contestant{{name: "yardstick"}, {name: "agent"}}, rows); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	shown := "before\n" + benchpage.Start(mark) + "a machine.\n\n| Measure | Goal | yardstick | agent |\n| --- | ---: | ---: | ---: |\n" +
		"| work: time | ≤ 20 ms | 1 ms (1–2) | 9 ms (8–10) |\n" + benchpage.End(mark) + "after\n"
	if string(written) != shown {
		t.Errorf("got\n%s\nwant\n%s", written, shown)
	}
}

func TestGrowthLeavesOutTheYardsticks(t *testing.T) {
	// Turns of 1 ms that rise to late milliseconds in the last edge turns.
	session := func(late int) sample {
		at := time.Unix(0, 0)
		arrivals := []time.Time{at}
		for n := range 2 * edge {
			step := time.Millisecond
			if n >= edge {
				step *= time.Duration(late)
			}
			at = at.Add(step)
			arrivals = append(arrivals, at)
		}
		return sample{traffic: traffic{arrivals: arrivals}}
	}
	if got := growth(session(3), session(3)); got != 1 {
		t.Errorf("growth as the yardstick's = %v, want 1", got)
	}
	if got := growth(session(5), session(3)); got != 3 {
		t.Errorf("growth = %v, want 3", got)
	}
}

// TestBeyond: a run is compared with the one just before it, and the yardstick's with
// nothing.
func TestBeyond(t *testing.T) {
	before := sample{wall: 7 * time.Millisecond}
	one := sample{wall: 10 * time.Millisecond, before: &before}
	if got := beyond(wall)(one, one); got != 3 {
		t.Errorf("beyond = %v, want 3", got)
	}
	if got := beyond(wall)(before, before); got != 7 {
		t.Errorf("beyond nothing = %v, want 7", got)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{5}, 5},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-runs", "0"},
		{"-check", "-skip-agent"},
		{"-page", "x", "-only", "version"},
		{"extra"},
		{"-unknown"},
	} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("parseOptions(%q) gave no error", args)
		}
	}
}
