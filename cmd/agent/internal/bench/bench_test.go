package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
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
	if err := short.verify(&scenario{calls: 2}); err == nil {
		t.Error("verify accepted 2 requests for 2 tool calls and an answer")
	}
	if err := short.verify(&scenario{calls: 1}); err != nil {
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
		{"extra"},
		{"-unknown"},
	} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("parseOptions(%q) gave no error", args)
		}
	}
}
