package modeltest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

func (s *suite) testText(t *testing.T) {
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
		t.Run(test.name, func(t *testing.T) {
			r := s.start(t, 0, Turn{Text: test.text})
			resp := r.must(hello())
			if got, want := resp.Parts.Text(), strings.Join(test.text, ""); got != want {
				t.Errorf("text %.200q, want %.200q", got, want)
			}
			if resp.Stop != model.StopEnd {
				t.Errorf("stop reason %q", resp.Stop)
			}
			if resp.ID == "" || resp.Model != testModel {
				t.Errorf("response id %q, model %q", resp.ID, resp.Model)
			}
		})
	}
	t.Run("as it arrives", func(t *testing.T) {
		release := make(chan struct{})
		r := s.start(t, 0, Turn{Text: []string{"one", "two"}, Gate: HoldAt(2, release)})
		var got []string
		for d, err := range r.provider.Stream(t.Context(), hello()) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind == model.DeltaText {
				if len(got) == 0 {
					close(release) // the second text is not sent before the first has arrived
				}
				got = append(got, d.Text)
			}
		}
		if !reflect.DeepEqual(got, []string{"one", "two"}) {
			t.Errorf("texts %q", got)
		}
	})
	t.Run("reasoning", func(t *testing.T) {
		r := s.start(t, 0, Turn{Reasoning: []string{"Let me ", "think."}, Text: []string{"4"}})
		want := model.Parts{model.Reasoning{Text: "Let me think."}, model.Text{Text: "4"}}
		if got := r.must(hello()).Parts; !reflect.DeepEqual(got, want) {
			t.Errorf("parts %+v, want %+v", got, want)
		}
	})
}

func (s *suite) testInfo(t *testing.T) {
	r := s.start(t, 0, Turn{})
	info := r.provider.Info()
	if info.Name == "" || info.Model != testModel || !strings.HasPrefix(info.Endpoint, "http://127.0.0.1:") {
		t.Errorf("info %+v", info)
	}
	if strings.Contains(info.Endpoint+info.Name, secret) {
		t.Errorf("info %+v holds the key", info)
	}
}

func (s *suite) testRepeat(t *testing.T) {
	r := s.start(t, 0, Turn{Text: []string{"one"}}, Turn{Text: []string{"two"}})
	stream := r.provider.Stream(t.Context(), hello())
	for _, want := range []string{"one", "two"} {
		var g model.Gatherer
		for d, err := range stream {
			if err != nil {
				t.Fatal(err)
			}
			g.Add(d)
		}
		if resp, err := g.Response(); err != nil || resp.Parts.Text() != want {
			t.Errorf("response %+v, %v, want %q", resp, err, want)
		}
	}
}

// hardArgs are argument texts that must arrive byte for byte.
var hardArgs = []string{
	`{"n":12345678901234567890,"f":1.0,"e":1E400}`,
	`{"z":1,"a":{"y":[1,[2,[3,[4,{"deep":[[[[{}]]]]}]]]],"b":null}, "a" : 2 }`,
	`{"s":"\u00e9\ud83d\ude42 \/ <&> \"q\" é🙂","t":"line\nbreak"}`,
	`{"path": "a.go", "content": "` + strings.Repeat("x := 1\\n", 30_000) + `"}`,
	`{`,
	``,
}

func (s *suite) testCalls(t *testing.T) {
	var calls []Call
	var want model.Parts
	for i, args := range hardArgs {
		c := Call{ID: "call_" + string(rune('a'+i)), Name: "tool_" + string(rune('a'+i)), Args: pieces(args)}
		calls = append(calls, c)
		want = append(want, model.ToolCall{ID: c.ID, Name: c.Name, Args: args})
	}
	for _, test := range []struct {
		name string
		turn Turn
		text string
	}{
		{"one after the other", Turn{Calls: calls}, ""},
		{"interleaved", Turn{Calls: calls, Interleave: true}, ""},
		{"after text", Turn{Calls: calls, Text: []string{"I'll look."}}, "I'll look."},
		{"without type", Turn{Calls: calls, Edits: []Edit{WithoutType}}, ""},
		{"without index", Turn{Calls: calls, Edits: []Edit{WithoutIndex}}, ""},
		{"all with index 0", Turn{Calls: calls[:2], Edits: []Edit{Replace(`"index":1,"id"`, `"index":0,"id"`), Replace(`"index":1,"function"`, `"index":0,"function"`)}}, ""},
		{"under another finish reason", Turn{Calls: calls, Finish: "stop"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.start(t, 0, test.turn)
			resp := r.must(hello())
			want := append(model.Parts{}, want[:len(test.turn.Calls)]...)
			if test.text != "" {
				want = append(model.Parts{model.Text{Text: test.text}}, want...)
			}
			if !reflect.DeepEqual(resp.Parts, want) {
				t.Errorf("parts\n%.1000q\nwant\n%.1000q", resp.Parts, want)
			}
			if resp.Stop != model.StopToolCalls {
				t.Errorf("stop reason %q", resp.Stop)
			}
		})
	}
	t.Run("without an id", func(t *testing.T) {
		r := s.start(t, 0, Turn{Calls: calls[:2], Edits: []Edit{Replace(`"id":"call_a",`, ""), Replace(`"id":"call_b",`, "")}})
		got := r.must(hello()).Parts.ToolCalls()
		if len(got) != 2 || got[0].ID == "" || got[0].ID == got[1].ID {
			t.Errorf("calls %+v, want two with different ids", got)
		}
	})
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

func (s *suite) testStopReasons(t *testing.T) {
	call := Call{ID: "call_1", Name: "write_file", Args: []string{`{"path":"a`}}
	for _, test := range []struct {
		name string
		turn Turn
		want model.StopReason
	}{
		{"stop", Turn{Text: []string{"done"}}, model.StopEnd},
		{"length", Turn{Text: []string{"cut"}, Finish: "length"}, model.StopMaxTokens},
		{"length inside a call", Turn{Calls: []Call{call}, Finish: "length"}, model.StopMaxTokens},
		{"content filter", Turn{Text: []string{"cut"}, Finish: "content_filter"}, model.StopContentFilter},
		{"refusal", Turn{Refusal: []string{"I can't help with that."}}, model.StopRefusal},
		{"unknown", Turn{Text: []string{"?"}, Finish: "something_new"}, model.StopOther},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.start(t, 0, test.turn)
			if got := r.must(hello()).Stop; got != test.want {
				t.Errorf("stop reason %q, want %q", got, test.want)
			}
		})
	}
	t.Run("a cut call has no end", func(t *testing.T) {
		r := s.start(t, 0, Turn{Calls: []Call{call}, Finish: "length"})
		for d, err := range r.provider.Stream(t.Context(), hello()) {
			if err != nil || d.Kind == model.DeltaToolEnd {
				t.Errorf("delta %+v, error %v", d, err)
			}
		}
	})
}

func (s *suite) testUsage(t *testing.T) {
	r := s.start(t, 0, Turn{Text: []string{"ok"}, Usage: Usage{Prompt: 1000, Cached: 900, Completion: 50, Reasoning: 40}}, Turn{})
	want := model.Usage{Input: 1000, CachedInput: 900, Output: 50, Reasoning: 40}
	if got := r.must(hello()).Usage; got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
	var last model.Usage
	for d, err := range r.provider.Stream(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind == model.DeltaUsage {
			last = d.Usage
		}
	}
	if last.Input != DefaultUsage.Prompt {
		t.Errorf("last DeltaUsage %+v", last)
	}
}
