package modeltest

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

func (r *rig) checkText() {
	for _, test := range []struct {
		name string
		text []string
	}{
		{"one chunk", []string{"Hello."}},
		{"several chunks", []string{"Hel", "lo", ", ", "world\n"}},
		{"escapes and other scripts", []string{"\"quoted\" \\ \t", "日本語 ", "🙂", "<b>&amp;</b>\u2028"}},
		{"empty", nil},
		{"a line over 64 KiB", []string{"a", strings.Repeat("long ", 40_000), "b"}},
	} {
		r.sub(test.name, func(r *rig) {
			r.start(Turn{Text: test.text})
			resp := r.must(hello())
			if got, want := resp.Parts.Text(), strings.Join(test.text, ""); got != want {
				r.Errorf("text %.200q, want %.200q", got, want)
			}
			if resp.Stop != model.StopEnd {
				r.Errorf("stop reason %q", resp.Stop)
			}
			if resp.ID == "" || resp.Model != r.traits.model {
				r.Errorf("response id %q, model %q", resp.ID, resp.Model)
			}
		})
	}
	r.sub("as it arrives", (*rig).checkLive)
	r.sub("reasoning", func(r *rig) {
		r.start(Turn{Reasoning: []string{"Let me ", "think."}, Text: []string{"4"}})
		want := model.Parts{model.Reasoning{Text: "Let me think."}, model.Text{Text: "4"}}
		if got := shown(r.must(hello()).Parts); !reflect.DeepEqual(got, want) {
			r.Errorf("parts %+v, want %+v", got, want)
		}
	})
	r.sub("the model that answers", func(r *rig) {
		r.start(Turn{Text: []string{"ok"}, Model: r.traits.model + "-2026-01-01"})
		if got := r.must(hello()).Model; got != r.traits.model+"-2026-01-01" {
			r.Errorf("model %q", got)
		}
	})
}

// checkLive holds back the second text until the first has arrived.
func (r *rig) checkLive() {
	release := make(chan struct{})
	turn := Turn{Text: []string{"one", "two"}}
	turn.Gate = HoldAt(r.frameWith(turn, `"two"`), release)
	r.start(turn)
	var got []string
	for d, err := range r.provider.Stream(r.ctx, hello()) {
		if err != nil {
			r.Fatalf("%v", err)
		}
		if d.Kind == model.DeltaText {
			if len(got) == 0 {
				close(release)
			}
			got = append(got, d.Text)
		}
	}
	if !reflect.DeepEqual(got, []string{"one", "two"}) {
		r.Errorf("texts %q", got)
	}
}

func (r *rig) checkInfo() {
	r.start(Turn{})
	info := r.provider.Info()
	if info.Name == "" || info.Model != r.traits.model || !strings.HasPrefix(info.Endpoint, "http://127.0.0.1:") {
		r.Errorf("info %+v", info)
	}
	if strings.Contains(info.Endpoint+info.Name, secret) {
		r.Errorf("info %+v contains the key", info)
	}
}

func (r *rig) checkRepeat() {
	r.start(Turn{Text: []string{"one"}}, Turn{Text: []string{"two"}})
	stream := r.provider.Stream(r.ctx, hello())
	for _, want := range []string{"one", "two"} {
		var g model.Gatherer
		for d, err := range stream {
			if err != nil {
				r.Fatalf("%v", err)
			}
			g.Add(d)
		}
		if resp, err := g.Response(); err != nil || resp.Parts.Text() != want {
			r.Errorf("response %+v, %v, want %q", resp, err, want)
		}
	}
}

// checkConcurrent sends concurrent requests.
func (r *rig) checkConcurrent() {
	r.use(NewFunc(r.api, func(req *Request) Turn {
		return Turn{Text: []string{"echo ", req.Parsed.Parts(model.RoleUser).Text()}}
	}), 0)
	var wg sync.WaitGroup
	problems := make(chan string, 16)
	for i := range cap(problems) {
		wg.Go(func() {
			req := hello()
			req.Messages[0].Parts = model.TextParts(fmt.Sprint(i))
			resp, err := model.Complete(r.ctx, r.provider, req)
			if err != nil || resp.Parts.Text() != fmt.Sprint("echo ", i) {
				problems <- fmt.Sprintf("request %d: %+v, %v", i, resp, err)
			}
		})
	}
	wg.Wait()
	close(problems)
	for p := range problems {
		r.Errorf("%s", p)
	}
}

// hardArgs are argument texts that must arrive byte for byte.
var hardArgs = []string{
	`{"n":12345678901234567890,"f":1.0,"e":1E400}`,
	`{"z":1,"a":{"y":[1,[2,[3,[4,{"deep":[[[[{}]]]]}]]]],"b":null}, "a" : 2 }`,
	`{"s":"\u00e9\ud83d\ude42 \/ <&> \"q\" é🙂","t":"line\nbreak"}`,
	`{"path": "a.go", "content": "` + strings.Repeat("x := 1\\n", 30_000) + `"}`,
}

// looseArgs are not JSON.
const looseArgs = `{`

// hardCalls returns calls with the hard arguments, and the expected parts.
func (r *rig) hardCalls() (calls []Call, want model.Parts) {
	texts := append(slices.Clone(hardArgs), "")
	if r.traits.anyArgs {
		texts = append(texts, looseArgs)
	}
	for i, args := range texts {
		c := Call{ID: "call_" + string(rune('a'+i)), Name: "tool_" + string(rune('a'+i)), Args: pieces(args)}
		calls = append(calls, c)
		if args == "" {
			args = r.traits.noArgs
		}
		want = append(want, model.ToolCall{ID: c.ID, Name: c.Name, Args: args})
	}
	return calls, want
}

type callsTest struct {
	name string
	turn Turn
	text string
}

func (r *rig) checkCalls() {
	calls, want := r.hardCalls()
	tests := []callsTest{
		{"one", Turn{Calls: calls[:1]}, ""},
		{"one after the other", Turn{Calls: calls}, ""},
		{"after text", Turn{Calls: calls, Text: []string{"I'll look."}}, "I'll look."},
		{"of the same tool", Turn{Calls: []Call{calls[0], {ID: "call_b", Name: "tool_b", Args: calls[1].Args}}}, ""},
	}
	if r.traits.interleave {
		tests = append(tests, callsTest{"interleaved", Turn{Calls: calls, Interleave: true}, ""})
	}
	if r.traits.conversation == "messages" && !r.traits.needsLimit {
		tests = append(tests, chatCalls(calls)...)
	}
	for _, test := range tests {
		r.sub(test.name, func(r *rig) {
			r.start(test.turn)
			resp := r.must(hello())
			want := append(model.Parts{}, want[:len(test.turn.Calls)]...)
			if test.text != "" {
				want = append(model.Parts{model.Text{Text: test.text}}, want...)
			}
			if got := shown(resp.Parts); !reflect.DeepEqual(got, want) {
				r.Errorf("parts\n%.1000q\nwant\n%.1000q", got, want)
			}
			if resp.Stop != model.StopToolCalls {
				r.Errorf("stop reason %q", resp.Stop)
			}
		})
	}
	if r.traits.lazyIDs {
		r.sub("without an id", func(r *rig) { r.checkWithoutID(calls) })
	}
}

// chatCalls are ways in which servers of the chat API differ.
func chatCalls(calls []Call) []callsTest {
	return []callsTest{
		{"without type", Turn{Calls: calls, Edits: []Edit{WithoutType}}, ""},
		{"without index", Turn{Calls: calls, Edits: []Edit{withoutIndex}}, ""},
		{"all with index 0", Turn{Calls: calls[:2], Edits: []Edit{Replace(`"index":1,"id"`, `"index":0,"id"`), Replace(`"index":1,"function"`, `"index":0,"function"`)}}, ""},
		{"under another finish reason", Turn{Calls: calls, Finish: "stop"}, ""},
	}
}

func (r *rig) checkWithoutID(calls []Call) {
	nameless := []Call{{Name: calls[0].Name, Args: calls[0].Args}, {Name: calls[1].Name, Args: calls[1].Args}}
	r.start(Turn{Calls: nameless, Edits: []Edit{Replace(`"id":"",`, "")}})
	got := r.must(hello()).Parts.ToolCalls()
	if len(got) != 2 || got[0].ID == "" || got[0].ID == got[1].ID {
		r.Errorf("calls %+v, want two with different ids", got)
	}
}

// pieces cuts a text into pieces of growing length, never within a rune.
func pieces(text string) []string {
	var out []string
	runes := []rune(text)
	for n := 1; len(runes) > 0; n = n*3 + 1 {
		n = min(n, len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}

func (r *rig) checkStopReasons() {
	call := Call{ID: "call_1", Name: "write_file", Args: []string{`{"path":"a`}}
	type test struct {
		name string
		turn Turn
		want model.StopReason
	}
	tests := []test{
		{"end", Turn{Text: []string{"done"}}, model.StopEnd},
		{"limit", Turn{Text: []string{"cut"}, Stop: model.StopMaxTokens}, model.StopMaxTokens},
		{"content filter", Turn{Text: []string{"cut"}, Stop: model.StopContentFilter}, r.traits.filter},
		{"unknown", Turn{Text: []string{"?"}, Finish: "something_new"}, model.StopOther},
	}
	if r.traits.cutCalls {
		tests = append(tests, test{"limit inside a call", Turn{Calls: []Call{call}, Stop: model.StopMaxTokens}, model.StopMaxTokens})
	}
	if r.traits.refusal != "" {
		tests = append(tests, test{"refusal", Turn{Refusal: []string{"I can't help with that."}}, r.traits.refusal})
	}
	switch r.api {
	case Messages:
		tests = append(tests,
			test{"stop sequence", Turn{Text: []string{"x"}, Finish: "stop_sequence"}, model.StopEnd},
			test{"context window", Turn{Text: []string{"x"}, Finish: "model_context_window_exceeded"}, model.StopMaxTokens})
	case Gemini, Vertex:
		for _, word := range []string{"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"} {
			tests = append(tests, test{word, Turn{Text: []string{"x"}, Finish: word}, model.StopContentFilter})
		}
		tests = append(tests, test{"a blocked prompt", Turn{Blocked: "PROHIBITED_CONTENT"}, model.StopContentFilter})
	}
	for _, test := range tests {
		r.sub(test.name, func(r *rig) {
			r.start(test.turn)
			if got := r.must(hello()).Stop; got != test.want {
				r.Errorf("stop reason %q, want %q", got, test.want)
			}
		})
	}
	if r.traits.cutCalls {
		r.sub("a cut call has no end", func(r *rig) {
			r.start(Turn{Calls: []Call{call}, Stop: model.StopMaxTokens})
			for d, err := range r.provider.Stream(r.ctx, hello()) {
				if err != nil || d.Kind == model.DeltaToolEnd {
					r.Errorf("delta %+v, error %v", d, err)
				}
			}
		})
	}
}

func (r *rig) checkUsage() {
	counted := Usage{Prompt: 1000, Cached: 900, Completion: 50, Reasoning: 40}
	want := model.Usage{Input: 1000, CachedInput: 900, Output: 50, Reasoning: 40}
	if r.traits.writes {
		counted.CacheWrite, want.CacheWrite = 60, 60
	}
	r.start(Turn{Text: []string{"ok"}, Usage: counted}, Turn{})
	if got := r.must(hello()).Usage; got != want {
		r.Errorf("usage %+v, want %+v", got, want)
	}
	var last, done model.Usage
	for d, err := range r.provider.Stream(r.ctx, hello()) {
		if err != nil {
			r.Fatalf("%v", err)
		}
		switch d.Kind {
		case model.DeltaUsage:
			last = d.Usage
		case model.DeltaDone:
			done = d.Usage
		}
	}
	if last.Input != DefaultUsage.Prompt || cmp.Or(done, last) != last {
		r.Errorf("last DeltaUsage %+v, DeltaDone %+v", last, done)
	}
}

var (
	tokenCount  = regexp.MustCompile(`(?i)("[a-z_]*token[a-z_]*"): ?\d+`)
	usageObject = regexp.MustCompile(`("usage(?:Metadata)?"): ?\{(?:[^{}]|\{[^{}]*\})*\}`)
)

// checkOddUsage replaces token counts by what some services send. The answer must
// arrive, with a usage that can be true.
func (r *rig) checkOddUsage() {
	for _, odd := range []string{`"12"`, `" 12 "`, `12.5`, `-7`, `1e300`, `99999999999999999999`, `"many"`, `null`, `true`, `{}`, `[1]`} {
		for _, what := range []*regexp.Regexp{tokenCount, usageObject} {
			turn := Turn{Text: []string{"counted"}, Edits: []Edit{func(frames []string) []string {
				for i := range frames {
					frames[i] = what.ReplaceAllString(frames[i], "$1:"+odd)
				}
				return frames
			}}}
			r.start(turn)
			resp, err := r.complete(r.ctx, hello())
			if err != nil || resp.Parts.Text() != "counted" {
				r.Errorf("a usage of %s: response %+v, %v", odd, resp, err)
				continue
			}
			for _, n := range []int{resp.Usage.Input, resp.Usage.CachedInput, resp.Usage.CacheWrite, resp.Usage.Output, resp.Usage.Reasoning} {
				if n < 0 || n > 100 {
					r.Errorf("a usage of %s: %+v", odd, resp.Usage)
				}
			}
		}
	}
}
