package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// scenario is the work of one run: the model calls the tool a number of times,
// once per answer, then ends with text.
type scenario struct {
	name string
	// command is what the agent runs without a model; the yardstick prints its
	// version, which is what a process costs.
	command  []string
	resume   string // the agent resumes this session; the yardstick begins one
	confined bool   // the agent runs commands in its sandbox
	// home makes what the agent's home has; the runs share it, as from the second
	// start on. Nil is a new home for each run.
	home func(m *homeMaker, home string) error
	// before is what the agent runs before each run, to compare them.
	before *scenario

	calls     int
	tool      string
	arguments func(n int) string
	deltas    int // number of pieces of the last answer
	// proof is text of the last call's result that is in a request only if the
	// tool really ran; without calls, text of what the agent sends or prints.
	proof string

	prepare  func(workspace string) error
	sessions func(dir, workspace string) error // writes earlier sessions
	metrics  []metric
}

const (
	shortCalls   = 50
	manyCalls    = 300
	longCalls    = 2_000
	fileLines    = 200
	outputBytes  = 10_000_000
	streamDeltas = 5_000
	// edge is how many turns at either end of the long session are compared.
	edge = 100
)

func scenarios() []*scenario {
	return slices.Concat(shortScenarios(), extensionScenarios(), longScenarios())
}

// shortScenarios are of one session with few turns, or none.
func shortScenarios() []*scenario {
	return []*scenario{
		{
			name:    "version",
			command: []string{"version"},
			metrics: []metric{{"time", millis, 15, wall}, peakMemory},
		},
		{
			name:   "one answer",
			deltas: 1,
			metrics: []metric{
				{"start to first request", millis, 20, firstRequest},
				{"size of first request", kilobytes, 9.5, requestSize},
				{"time", millis, 0, wall},
				peakMemory,
			},
		},
		shellCalls(fmt.Sprintf("%d shell calls", shortCalls), []metric{{"time", millis, 200, wall}, peakMemory}),
		inSandbox(shellCalls(fmt.Sprintf("%d shell calls in the sandbox", shortCalls), []metric{{"time", millis, 0, wall}, {"time compared with no sandbox", factor, 1.6, timesPlain}})),
		{
			name: fmt.Sprintf("%d reads of %d lines", shortCalls, fileLines), calls: shortCalls, deltas: 1,
			tool:      "read_file",
			arguments: readArguments,
			prepare:   files(shortCalls, fileLines),
			proof:     line(shortCalls-1, fileLines-1),
			metrics:   []metric{{"time", millis, 200, wall}, peakMemory},
		},
		{
			name: "10 MB of output", calls: 1, deltas: 1,
			tool: "shell",
			arguments: func(int) string {
				return arguments("command", fmt.Sprintf("yes $((70000+1)) | head -c %d", outputBytes))
			},
			proof:   "70001",
			metrics: []metric{{"time", millis, 200, wall}, peakMemory},
		},
		{
			name: fmt.Sprintf("%d deltas", streamDeltas), deltas: streamDeltas,
			metrics: []metric{{"time", millis, 120, wall}, peakMemory},
		},
	}
}

// shellCalls is a scenario of short commands.
func shellCalls(name string, metrics []metric) *scenario {
	return &scenario{
		name: name, calls: shortCalls, deltas: 1,
		tool: "shell",
		// The sum is in the result only.
		arguments: func(n int) string { return arguments("command", fmt.Sprintf("echo $((70000+%d))", n)) },
		proof:     fmt.Sprint(70000 + shortCalls - 1),
		metrics:   metrics,
	}
}

// inSandbox compares a scenario in the sandbox with itself without.
func inSandbox(s *scenario) *scenario {
	plain := *s
	s.before, s.confined = &plain, true
	return s
}

// extensionScenarios are of plugins, MCP servers and skills.
func extensionScenarios() []*scenario {
	echo := func(n int) string { return arguments("text", fmt.Sprintf("%d.", n)) }
	return []*scenario{
		{
			name:    "call of a plugin that does not run",
			command: []string{"tools", "call", echoPlugin + "_echo", "--args", echo(0), "--allow", "plugin(" + echoPlugin + "/*)"},
			proof:   "Echo: 0.", home: onePlugin,
			metrics: []metric{{"time", millis, 35, wall}},
		},
		{
			name: fmt.Sprintf("%d calls of a plugin", manyCalls), calls: manyCalls, deltas: 1,
			tool: echoPlugin + "_echo", arguments: echo, proof: fmt.Sprintf("%d.", manyCalls-1), home: onePlugin,
			before: &scenario{
				name: fmt.Sprintf("%d reads of a line", manyCalls), calls: manyCalls, deltas: 1,
				tool: "read_file", arguments: readArguments, prepare: files(manyCalls, 1), proof: line(manyCalls-1, 0),
			},
			metrics: []metric{{"a turn", millis, 0, turn}, {"a turn beyond one with a read", millis, 0.15, beyond(turn)}},
		},
		{
			name:   fmt.Sprintf("%d skills, %d MCP servers and %d plugins", manySkills, manyServers, manyPlugins),
			deltas: 1, home: manyExtensions, before: &scenario{name: "one answer", deltas: 1},
			metrics: []metric{{"start to first request", millis, 0, firstRequest}, {"start beyond one without them", millis, 10, beyond(firstRequest)}},
		},
	}
}

// longScenarios are of sessions that have become long or many.
func longScenarios() []*scenario {
	return []*scenario{
		{
			name: fmt.Sprintf("%d turns", longCalls), calls: longCalls, deltas: 1,
			tool:      "read_file",
			arguments: readArguments,
			prepare:   files(longCalls, 1),
			proof:     line(longCalls-1, 0),
			metrics: []metric{
				{fmt.Sprintf("a turn of the first %d", edge), millis, 0, firstTurns},
				{fmt.Sprintf("a turn of the last %d", edge), millis, 0, lastTurns},
				{"growth beyond the yardstick's", factor, 1.2, growth},
				peakMemory,
			},
		},
		{
			name:   fmt.Sprintf("resume after %d events", manyEvents),
			resume: longSession, sessions: compactedSession, deltas: 1,
			proof:   lastWords,
			metrics: []metric{{"start to first request", millis, 300, firstRequest}, {"peak memory", mebibytes, 80, peakMemory.value}},
		},
		{
			name:    fmt.Sprintf("list %d sessions", manySessions),
			command: []string{"sessions", "list"}, sessions: sessionsToList,
			proof:   fmt.Sprintf("0198%04x", manySessions/2),
			metrics: []metric{{"time", millis, 150, wall}, peakMemory},
		},
	}
}

// arguments returns a tool call's arguments with one string parameter.
func arguments(name, value string) string {
	data, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		return "{}" // unreachable: strings always encode
	}
	return string(data)
}

func readArguments(n int) string { return arguments("file_path", fileName(n)) }

func fileName(n int) string { return fmt.Sprintf("file-%03d.txt", n) }

// line is the text of one line of a prepared file; no two are the same.
func line(file, n int) string { return fmt.Sprintf("text %03d of %03d", n, file) }

// files returns a preparation that writes count files of the given length.
// Each call reads a different one, since a repeated read may be cached.
func files(count, lines int) func(string) error {
	return func(workspace string) error {
		for f := range count {
			var text strings.Builder
			for n := range lines {
				text.WriteString(line(f, n) + "\n")
			}
			if err := os.WriteFile(filepath.Join(workspace, fileName(f)), []byte(text.String()), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
}
