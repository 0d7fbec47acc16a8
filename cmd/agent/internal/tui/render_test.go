package tui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model"
)

// checkGolden compares lines with a file, in which ␛ stands for ESC.
func checkGolden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", "␛")
	goldentest.Check(t, "testdata/"+name+".golden", []byte(got))
}

func sample(t testing.TB) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "sample.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func TestMarkdownGolden(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 80} {
		for _, colors := range []bool{true, false} {
			lines := newMarkdown(painter{colors: colors}).render(sample(t), width)
			name := fmt.Sprintf("markdown-%d", width)
			if !colors {
				name += "-plain"
			}
			checkGolden(t, name, lines)
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > width {
					t.Errorf("a line is %d columns wide, want at most %d: %q", w, width, l)
				}
				if !colors && strings.Contains(l, "\x1b") {
					t.Errorf("a style without colours: %q", l)
				}
			}
		}
	}
}

// TestAnswerIsRenderedPieceByPiece streams the same text in pieces of every size:
// the scrollback must be the same, and only grow.
func TestAnswerIsRenderedPieceByPiece(t *testing.T) {
	t.Parallel()
	src := sample(t)
	md := newMarkdown(painter{})
	render := func(size int) string {
		a := &answer{md: md}
		var out []string
		for rest := src; rest != ""; {
			n := min(size, len(rest))
			out = append(out, a.add(rest[:n], 60)...)
			a.tail(60)
			rest = rest[n:]
		}
		return strings.Join(append(out, a.end(60)...), "\n")
	}
	want := render(len(src))
	for _, size := range []int{1, 2, 7, 64} {
		if got := render(size); got != want {
			t.Errorf("in pieces of %d:\n%s\nwant\n%s", size, got, want)
		}
	}
	checkGolden(t, "answer-60", strings.Split(want, "\n"))
}

func TestAnswerTail(t *testing.T) {
	t.Parallel()
	a := &answer{md: newMarkdown(painter{})}
	for _, step := range []struct{ add, done, tail string }{
		{"Some **bo", "", "Some **bo"},
		{"ld** text", "", "Some bold text"},
		{"\n\n", "Some bold text", ""},
		{"- one\n- tw", "", "• one|• tw"},
		{"o\n- three", "|• one", "• two|• three"},
		{"\n\nnext", "• two", "• three||next"},
		{"\n\n```go\nx := 1\ny :", "• three||next||  x := 1", "  y :"},
		{"= 2\n```\n", "  y := 2", ""},
		{"| a | b |\n|---|--", "", "a │ b|──┼──"},
	} {
		done := strings.Join(a.add(step.add, 40), "|")
		if tail := strings.Join(a.tail(40), "|"); done != step.done || tail != step.tail {
			t.Errorf("after %q: done %q, tail %q; want %q, %q", step.add, done, tail, step.done, step.tail)
		}
	}
}

func TestToolLinesGolden(t *testing.T) {
	t.Parallel()
	diff, _ := json.Marshal("diff a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,40 @@\n context\n-\told line that is rather long and goes on for a while\n" + strings.Repeat("+new\x1b[31m line\n", 39))
	result := func(name, text string, failed bool, meta map[string]json.RawMessage, structured string) event.ToolResult {
		return event.ToolResult{Name: name, Content: model.TextParts(text), IsError: failed, DurationMS: 3210, Meta: meta, Structured: json.RawMessage(structured)}
	}
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, "/work/dir/file%d.go:%d: a line of output that does not fit on a narrow terminal\n", i, i)
	}
	for _, width := range []int{40, 80} {
		s := newScene(painter{colors: true}, width, "/work/dir")
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		s.now = func() time.Time { return now }
		for i, c := range []struct {
			args   string
			result event.ToolResult
		}{
			{`{"command":"go test ./... # with a long command line that has to be cut somewhere"}`, result("shell", many.String(), false, nil, `{"exitCode":0}`)},
			{`{"command":"make"}`, result("shell", many.String(), false, nil, `{"exitCode":2}`)},
			{`{"command":"true"}`, result("shell", "", false, nil, `{"exitCode":0}`)},
			{`{"file_path":"/work/dir/a/x.go"}`, result("edit_file", "edited", false, map[string]json.RawMessage{"diff": diff}, "")},
			{`{"file_path":"/work/dir/missing.go"}`, result("read_file", "/work/dir/missing.go does not exist; list_dir shows what does", true, nil, "")},
			{`{}`, result("grep", many.String(), false, nil, "")},
			{`{"a":1,"b":{"c":[1,2,3]}}`, result("foreign\x1b]0;x\atool", "fine", false, nil, "")},
			{`not json \u001b`, result("strange", "fine\rreally", false, nil, "")},
		} {
			id := fmt.Sprint(i)
			s.apply(event.Event{Call: id, Body: event.ToolUse{Name: c.result.Name, Args: c.args}})
			s.apply(event.Event{Call: id, Body: c.result})
		}
		s.apply(event.Event{Body: event.ReasoningDelta{Text: "hm"}})
		now = now.Add(90 * time.Second)
		for _, b := range []event.Body{
			event.Message{Content: model.TextParts("An answer.")},
			event.LLMRetry{Attempt: 1, Max: 3, WaitMS: 2000, Message: "overloaded"},
			event.TurnLimit{Limit: "maxRounds", Max: 50},
			event.TokenLimit{Limit: "maxCost", Max: 1.5, Used: 1.62},
			event.LoopDetection{},
			event.Warning{Message: "a long warning that has to be broken on a narrow terminal"},
			event.Question{QID: "q", Title: "Run `make`?"},
			event.Answer{QID: "q", Choice: "deny", Reason: "not now"},
			event.Question{QID: "r", Title: "Sure?"},
			event.Answer{QID: "r", Withdrawn: true},
			event.Cancelled{Reason: "interrupted by Ctrl-C"},
			event.Error{Code: "NETWORK_ERROR", Message: "no connection"},
		} {
			s.apply(event.Event{Body: b})
		}
		lines := s.take()
		checkGolden(t, fmt.Sprintf("tools-%d", width), lines)
		for _, l := range lines {
			if w := ansi.StringWidth(l); w > width {
				t.Errorf("a line is %d columns wide, want at most %d: %q", w, width, l)
			}
		}
	}
}

// TestLongOutput: of an output whose middle the model does not get, the user sees how
// long it is, and not where the model finds the rest.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	text := "1\n2\n[… 40 lines omitted …]\n43\n44\n45\n46\n[exit code 0, 0.1 s]\n[Full output: context:x/y (open it with read_file)]"
	for whole, want := range map[string]string{strings.Repeat("x\n", 46): "46 lines", "": "long output"} {
		s := newScene(painter{}, 80, "/w")
		b := event.ToolResult{Name: "shell", Content: model.TextParts(text), Output: &event.Output{Text: whole, Handle: "context:x/y"}}
		got := strings.Join(s.toolLines(&call{name: "shell", args: "seq 46"}, b), "\n")
		above := map[string]string{"46 lines": "… 42 lines above", "long output": "… many lines above"}[want]
		if !strings.HasPrefix(got, "✓ shell seq 46 · "+want+" · ") || !strings.Contains(got, above+"\n  44\n  45\n  46\n  [exit code 0, 0.1 s]") || strings.Contains(got, "Full output") {
			t.Errorf("%s:\n%s", want, got)
		}
	}
}

func TestMessageCompletesTheStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, streamed, whole, want string }{
		{"nothing streamed", "", "All of it.", "All of it."},
		{"the beginning streamed", "All ", "All of it.", "All of it."},
		{"everything streamed", "All of it.", "All of it.", "All of it."},
		{"a gap", "All it.", "All of it.", "… the streamed text had gaps; the whole answer:\n\nAll of it."},
	} {
		s := newScene(painter{}, 80, "")
		if tt.streamed != "" {
			s.apply(event.Event{Body: event.MessageDelta{Text: tt.streamed}})
		}
		s.apply(event.Event{Body: event.Message{Content: model.TextParts(tt.whole)}})
		if got := strings.Join(s.take(), "\n"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("# a\n\n- b\n  ```\n  c\n", 3)
	f.Add("| a | b |\n|---|---|\n| 1 |\n", 5)
	f.Add("1. a\n\n   b\n> c\n\n***\n[x](y \"z\") ![i](j) <http://k>", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		a := &answer{md: newMarkdown(painter{})}
		size = max(1, size)
		var lines []string
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			lines = append(append(lines, a.add(rest[:n], 30)...), a.tail(30)...)
			rest = rest[n:]
		}
		for _, l := range append(lines, a.end(30)...) {
			if strings.ContainsAny(l, "\n\t") || display.Printable(l) != l {
				t.Fatalf("the line %q could control the terminal", l)
			}
		}
	})
}

func TestHeadTail(t *testing.T) {
	t.Parallel()
	var k headTail
	for range 100_000 {
		k.add("0123456789")
	}
	if got := k.String(); len(got) > 50_000 || !strings.Contains(got, "bytes omitted") {
		t.Errorf("%d of 1,000,000 bytes are kept", len(got))
	}
}

// BenchmarkStream renders an answer of 5,000 deltas, with a frame for every 33
// of them: five seconds of streaming.
func BenchmarkStream(b *testing.B) {
	piece := strings.Split(strings.Repeat("Some **words** of an `answer`, with a [link](https://example.org) and more.\n\n- an item\n- another\n\n", 100), " ")
	b.ReportAllocs()
	for b.Loop() {
		s := newScene(painter{colors: true}, 80, "/w")
		for i := range 5000 {
			s.apply(event.Event{Body: event.MessageDelta{Text: piece[i%len(piece)] + " "}})
			if i%33 == 0 {
				s.answer.tail(80)
				s.take()
			}
		}
	}
}

// BenchmarkOneLongLine is the worst case of an answer: one paragraph.
func BenchmarkOneLongLine(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s := newScene(painter{colors: true}, 80, "/w")
		for i := range 5000 {
			s.apply(event.Event{Body: event.MessageDelta{Text: "and another word "}})
			if i%33 == 0 {
				s.answer.tail(80)
			}
		}
	}
}

// BenchmarkReplay shows the last ten turns of a session of 5,000 events.
func BenchmarkReplay(b *testing.B) {
	s := newFakeSession()
	s.past(625)
	b.ReportAllocs()
	for b.Loop() {
		h := newHost(b.Context(), Options{Session: s, Asker: NewAsker(), Replay: 10})
		d := newDriver(h, newScene(painter{colors: true}, 80, "/w"))
		shown := make(chan int, 1)
		h.post = func(msg any) {
			d.handle(msg)
			if _, ok := msg.(pastMsg); ok {
				shown <- len(d.scene.take())
				h.stop()
			}
		}
		h.start(b.Context())
		if n := <-shown; n == 0 {
			b.Fatal("nothing was shown")
		}
		h.close()
	}
}

// BenchmarkFrame draws the region while an answer streams.
func BenchmarkFrame(b *testing.B) {
	s := newFakeSession()
	h := newHost(b.Context(), Options{Session: s, Asker: NewAsker(), Commands: testCommands, Status: func() Status { return Status{Model: "m", Tokens: 5} }})
	p := painter{colors: true}
	l := &lineScreen{driver: newDriver(h, newScene(p, 80, "/w")), screen: &screen{out: &safeBuffer{}, width: 80, height: 24}, editor: newEditor(p, nil), at: -1}
	l.work.busy, l.work.since = true, time.Now()
	l.editor.set("some text that is being typed")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.scene.apply(event.Event{Body: event.MessageDelta{Text: "word "}})
		if i%50 == 0 {
			l.scene.apply(event.Event{Body: event.MessageDelta{Text: "\n\n"}})
		}
		l.draw()
	}
}
