package scripted_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/scripted"
)

func parse(t *testing.T, text string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func user(text string) *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts(text)}}}
}

func result(name, text string, isError bool) model.ToolResult {
	return model.ToolResult{CallID: "x", Name: name, Content: model.TextParts(text), IsError: isError}
}

func results(rs ...model.Part) *model.Request {
	return &model.Request{Messages: []model.Message{
		{Role: model.RoleUser, Parts: model.TextParts("the task")},
		{Role: model.RoleTool, Parts: rs},
	}}
}

func TestPlayFile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "fix.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := scripted.Parse("fix.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Provider(scripted.Options{Vars: map[string]string{"workspace": `C:\tmp\"w"`}})
	if got, want := p.Info(), (model.ProviderInfo{Name: "scripted", Model: "demo-1"}); got != want || s.Name() != "demo-1" {
		t.Errorf("Info %+v, Name %q", got, s.Name())
	}
	steps := []struct {
		req  *model.Request
		want *model.Response
	}{
		{
			user("Please repair the failing test."),
			&model.Response{
				Parts: model.Parts{
					model.Reasoning{Text: "First the two files."},
					model.Text{Text: "I will look at the code and its test.\n"},
					model.ToolCall{ID: "call_1_1", Name: "read_file", Args: `{"file_path":"C:\\tmp\\\"w\"/sum.go","limit":20}`},
					model.ToolCall{ID: "call_1_2", Name: "read_file", Args: `{ "file_path" : "C:\\tmp\\\"w\"/sum_test.go" }`},
				},
				Usage: model.Usage{Input: 7, Output: 41, Reasoning: 5},
				Stop:  model.StopToolCalls, ID: "scripted_1", Model: "demo-1",
			},
		},
		{
			results(result("read_file", "package sum\n\treturn a - b", false), result("read_file", "func TestSum", false)),
			&model.Response{
				Parts: model.Parts{
					model.Text{Text: "The sign is wrong."},
					model.ToolCall{
						ID: "call_2_1", Name: "edit_file",
						Args: `{"file_path":"C:\\tmp\\\"w\"/sum.go","new_string":"return a + b // <&>","old_string":"return a - b"}`,
					},
				},
				Usage: model.Usage{Input: 11, Output: 31},
				Stop:  model.StopToolCalls, ID: "scripted_2", Model: "demo-1",
			},
		},
		{
			results(result("edit_file", "Replaced 1 occurrence", false)),
			&model.Response{
				Parts: model.TextParts("Fixed."),
				Usage: model.Usage{Input: 900, CachedInput: 800, CacheWrite: 50, Output: 3, Reasoning: 1},
				Stop:  model.StopEnd, ID: "scripted_3", Model: "demo-1",
			},
		},
	}
	for i, step := range steps {
		got, err := model.Complete(t.Context(), p, step.req)
		if err != nil {
			t.Fatalf("turn %d: %v", i+1, err)
		}
		if !reflect.DeepEqual(got, step.want) {
			t.Errorf("turn %d:\n got %+v\nwant %+v", i+1, got, step.want)
		}
	}
	_, err = model.Complete(t.Context(), p, results(result("shell", "ok", false)))
	wantMismatch(t, err, `script fix.yaml: all 3 turns have been played`, `a success of shell: "ok"`)
}

func wantMismatch(t *testing.T, err error, texts ...string) {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.CodeInvalidRequest || e.Provider != "scripted" || e.Retryable() {
		t.Fatalf("error %v, want a final one of code %s", err, model.CodeInvalidRequest)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

func TestWhen(t *testing.T) {
	tests := []struct {
		name, when string
		req        *model.Request
		want       []string // of the error; nil = it matches
	}{
		{"user", `{user: "^h"}`, user("hello"), nil},
		{"any user", `{user: ""}`, user(""), nil},
		{"other user", `{user: "^h"}`, user("bye"), []string{"turn 1 (line 3)", `a user message matching "^h"`, `the last message is a user message: "bye"`}},
		{"user, but a result came", `{user: ""}`, results(result("t", "out", false)), []string{`a success of t: "out"`}},
		{"result", `{tool: t, result: "o+k"}`, results(result("t", "ook", false)), nil},
		{"one of the results", `{tool: b}`, results(result("a", "", false), result("b", "", false)), nil},
		{"other tool", `{tool: t}`, results(result("u", "ok", false)), []string{"expects a success of t, but", "a success of u"}},
		{"failed, unexpectedly", `{tool: t}`, results(result("t", "no such tool", true)), []string{`a failure of t: "no such tool"`}},
		{"failed, as expected", `{tool: t, result: such, isError: true}`, results(result("t", "no such tool", true)), nil},
		{"did not fail", `{tool: t, isError: true}`, results(result("t", "ok", false)), []string{"expects a failure of t, but"}},
		{"other text", `{tool: t, result: yes}`, results(result("t", "no", false)), []string{`a success of t matching "yes"`}},
		{"result, but the user spoke", `{tool: t}`, user("stop"), []string{`the last message is a user message: "stop"`}},
		{"no message", `{user: ""}`, &model.Request{}, []string{"there is no message"}},
		{"long text is cut", `{tool: t}`, user(strings.Repeat("é", 500)), []string{strings.Repeat("é", 200) + `"…`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := parse(t, "name: m\nturns:\n  - when: "+tc.when+"\n    text: done\n").Provider(scripted.Options{})
			_, err := model.Complete(t.Context(), p, tc.req)
			if tc.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantMismatch(t, err, tc.want...)
			_, again := model.Complete(t.Context(), p, tc.req)
			wantMismatch(t, again, tc.want...) // the turn is still the next one
		})
	}
}

func TestStreamsWordByWord(t *testing.T) {
	p := parse(t, "name: m\nturns:\n  - text: \"  two  words\\n\\nénd\"\n    calls: [{name: t, args: '{ \"a\": 1 }'}]\n").Provider(scripted.Options{})
	var got []string
	for d, err := range p.Stream(t.Context(), user("x")) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind == model.DeltaText || d.Kind == model.DeltaToolArgs {
			got = append(got, d.Text)
		}
	}
	if want := []string{"  ", "two  ", "words\n\n", "énd", "{ ", `"a": `, "1 ", "}"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name, turn string
		want       model.Error
		parts      model.Parts
	}{
		{
			"error", `{error: {code: RATE_LIMITED, status: 429, retryAfterMs: 1500, message: "slow ${who}"}}`,
			model.Error{Code: model.CodeRateLimited, Provider: "scripted", Status: 429, RetryAfter: 1500 * time.Millisecond, Message: "slow down"},
			nil,
		},
		{
			"error after some text", `{text: I was, error: {code: NETWORK_ERROR}}`,
			model.Error{Code: model.CodeNetwork, Provider: "scripted"},
			model.TextParts("I was"),
		},
		{
			"cut text", `{text: I was, cut: true}`,
			model.Error{Code: model.CodeNetwork, Provider: "scripted", Message: "the script cuts the stream off here", Err: io.ErrUnexpectedEOF},
			model.TextParts("I was"),
		},
		{
			"cut call", `{calls: [{name: a, args: {x: 1}}, {name: b, args: {é: é}}], cut: true}`,
			model.Error{Code: model.CodeNetwork, Provider: "scripted", Message: "the script cuts the stream off here", Err: io.ErrUnexpectedEOF},
			model.Parts{
				model.ToolCall{ID: "call_1_1", Name: "a", Args: `{"x":1}`},
				model.ToolCall{ID: "call_1_2", Name: "b", Args: `{"é"`},
			},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, "name: m\nturns:\n  - "+tc.turn+"\n  - text: again\n")
			p := s.Provider(scripted.Options{Vars: map[string]string{"who": "down"}})
			var g model.Gatherer
			var failure error
			for d, err := range p.Stream(t.Context(), user("x")) {
				if failure != nil {
					t.Fatal("something follows the error")
				}
				if failure = err; err == nil {
					g.Add(d)
				}
			}
			var e *model.Error
			if !errors.As(failure, &e) || *e != tc.want {
				t.Errorf("error %#v, want %#v", failure, tc.want)
			}
			if r, err := g.Response(); !reflect.DeepEqual(r.Parts, tc.parts) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %+v, %v; want %+v without an end", r.Parts, err, tc.parts)
			}
			if r, err := model.Complete(t.Context(), p, user("x")); err != nil || r.Parts.Text() != "again" {
				t.Errorf("the next turn: %+v, %v", r, err)
			}
		})
	}
}

func TestStopReasons(t *testing.T) {
	for turn, want := range map[string]model.StopReason{
		"{text: a}":                              model.StopEnd,
		"{calls: [{name: t}]}":                   model.StopToolCalls,
		"{calls: [{name: t}], stop: max_tokens}": model.StopMaxTokens,
		"{stop: refusal}":                        model.StopRefusal,
	} {
		got, err := model.Complete(t.Context(), parse(t, "name: m\nturns: ["+turn+"]").Provider(scripted.Options{}), user("x"))
		if err != nil || got.Stop != want {
			t.Errorf("%s: stop %q, %v; want %q", turn, got.Stop, err, want)
		}
	}
}

func TestLatency(t *testing.T) {
	const script = `
name: m
latency: 20ms
turns:
  - text: one two
  - {text: three, latency: 1s}
  - {text: four, latency: 0s}
`
	var waits []time.Duration
	p := parse(t, script).Provider(scripted.Options{Sleep: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}})
	for range 3 {
		if _, err := model.Complete(t.Context(), p, user("x")); err != nil {
			t.Fatal(err)
		}
	}
	const ms = time.Millisecond
	if want := []time.Duration{20 * ms, 20 * ms, 20 * ms, 1000 * ms, 1000 * ms}; !reflect.DeepEqual(waits, want) {
		t.Errorf("waits %v, want one before each delta: %v", waits, want)
	}
}

func TestCancel(t *testing.T) {
	check := func(t *testing.T, ctx context.Context, err error) {
		t.Helper()
		var e *model.Error
		if !errors.Is(err, ctx.Err()) || !errors.As(err, &e) || e.Retryable() {
			t.Errorf("error %v, want a final *model.Error that is %v", err, ctx.Err())
		}
	}
	t.Run("before", func(t *testing.T) {
		p := parse(t, "name: m\nturns: [{text: a}]").Provider(scripted.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := model.Complete(ctx, p, user("x"))
		check(t, ctx, err)
		if _, err := model.Complete(t.Context(), p, user("x")); err != nil {
			t.Errorf("the turn was taken: %v", err)
		}
	})
	for name, script := range map[string]string{
		"in the middle":          "name: m\nturns: [{text: one two three}]",
		"while the timer is set": "name: m\nturns: [{text: one, latency: 1h}]",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			opts := scripted.Options{}
			if strings.Contains(script, "1h") {
				time.AfterFunc(time.Millisecond, cancel)
			}
			var last error
			for _, err := range parse(t, script).Provider(opts).Stream(ctx, user("x")) {
				if last != nil {
					t.Fatal("something follows the error")
				}
				last = err
				cancel()
			}
			check(t, ctx, last)
		})
	}
}

func TestConsumerStops(t *testing.T) {
	const turn = "{reasoning: a b, text: c d, calls: [{name: t, args: {k: v w}}]}"
	for stopAfter := 1; stopAfter <= 8; stopAfter++ {
		n := 0
		for range parse(t, "name: m\nturns: ["+turn+"]").Provider(scripted.Options{}).Stream(t.Context(), user("x")) {
			if n++; n == stopAfter {
				break
			}
		}
		if n != stopAfter {
			t.Errorf("stopped after %d of %d deltas", n, stopAfter)
		}
	}
}

func TestConcurrentCallsTakeOneTurnEach(t *testing.T) {
	s := parse(t, "name: m\nturns:\n"+strings.Repeat("  - {text: a b c}\n", 50))
	p, other := s.Provider(scripted.Options{}), s.Provider(scripted.Options{})
	var mu sync.Mutex
	ids := map[string]bool{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			r, err := model.Complete(t.Context(), p, user("x"))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[r.ID] = true
		})
	}
	wg.Wait()
	if len(ids) != 50 {
		t.Errorf("%d different turns were played, want 50", len(ids))
	}
	if r, err := model.Complete(t.Context(), other, user("x")); err != nil || r.ID != "scripted_1" {
		t.Errorf("another provider of the script does not begin with its first turn: %+v, %v", r, err)
	}
}

func TestEstimate(t *testing.T) {
	req := user("12345678")
	req.System = "1234"
	req.Tools = []model.ToolDef{{Name: "tool", Description: "12345678", Schema: []byte(`{"a":11}`)}}
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.Reasoning{Text: "1234"}, model.ToolCall{Name: "tool", Args: "1234"}}},
		model.Message{Role: model.RoleTool, Parts: model.Parts{result("tool", "1234", false)}},
	)
	s := parse(t, "name: m\nturns: [{reasoning: '12345678', text: '1234', calls: [{name: four, args: '{\"\":\"\"}'}]}]")
	got, err := model.Complete(t.Context(), s.Provider(scripted.Options{}), req)
	if err != nil {
		t.Fatal(err)
	}
	// 4 + (4+8+8) + 8 + (4+4+4) + 4 = 48 characters in; 8 + 4 + (4+7) out.
	if want := (model.Usage{Input: 12, Output: 5, Reasoning: 2}); got.Usage != want {
		t.Errorf("got %+v, want %+v", got.Usage, want)
	}
}

func TestParseErrors(t *testing.T) {
	turn := func(s string) string { return "name: m\nturns:\n  - text: first\n  - " + s + "\n" }
	for in, want := range map[string]string{
		"":                                                  "script x.yaml: the file is empty",
		"turns: [{text: a}]":                                `"name" is missing`,
		"name: m":                                           `"turns" is missing`,
		"name: m\nturns: []":                                `"turns" is missing`,
		"name: m\nlatency: -1s\nturns: [{}]":                `"latency" is negative`,
		"name: m\nlatency: 20\nturns: [{}]":                 "line 2: cannot unmarshal",
		"name: m\nturns: [{text: a}]\n---\na":               "expected a single YAML document",
		"name: m\n\tturns: 1":                               "line 2: ",
		"name: m\nname: n":                                  "line 2: ",
		"name: m\nturn: [{text: a}]":                        `line 2: unknown key "turn": a script has name, latency, turns`,
		turn("txt: a"):                                      `line 4: unknown key "txt": a turn has when, reasoning, text,`,
		turn("{text: a, when: {usr: b}}"):                   `line 4: unknown key "usr": "when" has user, tool, result, isError`,
		turn("{text: a, when: b}"):                          `line 4: cannot unmarshal !!str ` + "`b`" + ` into "when"`,
		turn("{}"):                                          "turn 2 (line 4): it is empty: add text",
		turn("null"):                                        "turn 2 (line 4): it is empty: add text",
		turn("{text: a, latency: -1s}"):                     `turn 2 (line 4): "latency" is negative`,
		turn("{text: a, when: {}}"):                         `turn 2 (line 4): "when" needs "user" or "tool"`,
		turn("{text: a, when: {result: b}}"):                `"when" needs "user" or "tool"`,
		turn("{text: a, when: {user: b, tool: c}}"):         `"when" has both "user" and a result`,
		turn("{text: a, when: {user: b, isError: true}}"):   `"when" has both "user" and a result`,
		turn("{text: a, when: {user: '('}}"):                `turn 2 (line 4): "when": "user": error parsing regexp`,
		turn("{text: a, when: {tool: t, result: '['}}"):     `"when": "result": error parsing regexp`,
		turn("{calls: [{name: t}, null]}"):                  `turn 2 (line 4): call 2: "name" is missing`,
		turn("{calls: [{name: t}, {args: {}}]}"):            `turn 2 (line 4): call 2: "name" is missing`,
		turn("{calls: [{name: t, args: [1]}]}"):             `call 1: "args" must be a mapping`,
		turn("{calls: [{name: t, args: {a: .nan}}]}"):       `call 1: "args" cannot be written as JSON`,
		turn("{calls: [{name: t, args: {a: {1: 2}}}]}"):     `call 1: "args" cannot be written as JSON`,
		turn("{stop: whenever}"):                            `unknown "stop" "whenever": expected one of ["end" "tool_calls"`,
		turn("{text: a, usage: {input: -1}}"):               `"usage" has a negative number`,
		turn("{error: {}}"):                                 `unknown "code" "" of "error": expected one of ["PROVIDER_NOT_CONFIGURED"`,
		turn("{error: {code: TIMEOUT, status: -1}}"):        `"error" has a negative number`,
		turn("{error: {code: TIMEOUT}, cut: true}"):         `"error" and "cut" exclude each other`,
		turn("{text: a, cut: true, stop: end}"):             `"stop" and "usage" have no effect`,
		turn("{error: {code: TIMEOUT}, usage: {input: 1}}"): `"stop" and "usage" have no effect`,
	} {
		s, err := scripted.Parse("x.yaml", []byte(in))
		if err == nil || s != nil || !strings.HasPrefix(err.Error(), "script x.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", in, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "scripted.") {
			t.Errorf("%q: the error shows a Go type: %v", in, err)
		}
	}
}

// FuzzParse checks that every accepted script can be played to its end.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "fix.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("name: m\nturns: &a\n  - &b {text: a, when: {user: '.'}}\n  - *b\n"))
	f.Add([]byte("name: m\nturns: [{calls: [{name: t, args: {a: [1, 2.5, null, true, 2024-01-01]}}], cut: true}]"))
	f.Add([]byte("name: m\nturns: [{error: {code: TIMEOUT}}, {stop: refusal}]"))
	noWait := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := scripted.Parse("fuzz", in)
		if err != nil {
			return
		}
		p := s.Provider(scripted.Options{Sleep: noWait, Vars: map[string]string{"workspace": "/w"}})
		for range 5 {
			_, err := model.Complete(t.Context(), p, user("x"))
			var e *model.Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("untyped error %v", err)
			}
		}
	})
}
