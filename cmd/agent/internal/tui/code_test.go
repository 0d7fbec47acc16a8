package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// colored returns a painter with colours and highlighting.
func colored() painter { return painter{colors: true, look: &look{theme: ansiTheme}} }

// codeSample is an answer with code: a long block, whose comment begins before
// what is shown at first, a nested one, and one of no known language.
func codeSample() string {
	var b strings.Builder
	b.WriteString("Code:\n\n```go\n// Package x\npackage x\n\nfunc F(a int) string {\n\treturn `a\nb` + \"c\"\n}\n\n/* one\ntwo\n")
	for i := range 20 {
		fmt.Fprintf(&b, "%d if \"x\"\n", i)
	}
	b.WriteString("*/\nvar x = 1\n```\n\n- item\n\n  ```python\n  def f(): # c\n      return None\n  ```\n\n```nothing\nif x \x1b[31m\n```\nEnd.\n")
	return b.String()
}

// TestCodeGolden streams code in pieces of several sizes: what is shown does not
// depend on them, and no code reaches the terminal as a sequence.
func TestCodeGolden(t *testing.T) {
	t.Parallel()
	var want string
	for _, size := range []int{1, 7, 1 << 20} {
		a := &answer{md: newMarkdown(colored())}
		var out []string
		for rest := codeSample(); rest != ""; {
			n := min(size, len(rest))
			out = append(out, a.add(rest[:n], 60)...)
			if tail := a.tail(60); len(tail) > maxHeld+2 {
				t.Errorf("%d lines are held back", len(tail))
			}
			rest = rest[n:]
		}
		got := strings.Join(append(out, a.end(60)...), "\n")
		if want == "" {
			want = got
			checkGolden(t, "code-60", strings.Split(got, "\n"))
		}
		if got != want {
			t.Errorf("in pieces of %d:\n%s\nwant\n%s", size, got, want)
		}
	}
	if text := ansi.Strip(want); text != display.Printable(text) {
		t.Errorf("the code could control the terminal: %q", text)
	}
}

// TestFileViewGolden shows a file that was read in full.
func TestFileViewGolden(t *testing.T) {
	t.Parallel()
	s := newScene(colored(), 60, "/w")
	text := " 9 | func f() { // a comment that is too long for this narrow terminal\n10 | \treturn \"x\"\n11 | }\n(lines 9–11 of 20; use offset 12 to continue)"
	s.apply(event.Event{Call: "1", Body: event.ToolUse{Name: "read_file", Args: `{"file_path":"/w/a.go"}`}})
	s.apply(event.Event{Call: "1", Body: event.ToolResult{Name: "read_file", Content: model.TextParts(text)}})
	checkGolden(t, "file-60", s.more.lines(s, 60))
}

func FuzzCode(f *testing.F) {
	f.Add("```go\nfunc f() { \"\x1b[0m\" }\n```\n- a\n  ```py\n  x\n", 3)
	f.Add("```html\n<a b='\u202e'>\t<script>\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n</script>", 100)
	p := colored() // languages are read once
	f.Fuzz(func(t *testing.T, text string, size int) {
		a, plainly := &answer{md: newMarkdown(p)}, &answer{md: newMarkdown(painter{colors: true})}
		size = max(1, size)
		var lines, want []string
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			lines = append(lines, a.add(rest[:n], 30)...)
			want = append(want, plainly.add(rest[:n], 30)...)
			for _, l := range a.tail(30) {
				if l = ansi.Strip(l); strings.ContainsAny(l, "\n\t") || display.Printable(l) != l {
					t.Fatalf("the line %q could control the terminal", l)
				}
			}
			rest = rest[n:]
		}
		got := ansi.Strip(strings.Join(append(lines, a.end(30)...), "\n"))
		if all := ansi.Strip(strings.Join(append(want, plainly.end(30)...), "\n")); got != all {
			t.Errorf("highlighted:\n%q\nwant\n%q", got, all)
		}
	})
}

// BenchmarkStreamCode renders code of 5,000 deltas, with a frame for every 33.
func BenchmarkStreamCode(b *testing.B) {
	piece := strings.SplitAfter("// F returns the sum\nfunc F(a, b int) int {\n\tif a > 0 {\n\t\treturn fmt.Sprint(a, \"b\", b)\n\t}\n}\n\n", " ")
	b.ReportAllocs()
	for b.Loop() {
		s := newScene(colored(), 80, "/w")
		s.apply(event.Event{Body: event.MessageDelta{Text: "```go\n"}})
		for i := range 5000 {
			s.apply(event.Event{Body: event.MessageDelta{Text: piece[i%len(piece)]}})
			if i%33 == 0 {
				s.answer.tail(80)
				s.take()
			}
		}
	}
}
