package display

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
)

func ExampleVisibleLine() {
	fmt.Println(VisibleLine("npx server\r\n\x1b[2K--allow \u202e/", 80))
	// Output: npx server \x1b[2K--allow \u202e/
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[1;31mred\x1b[0m", "red"},
		{"\x1b]0;title\atext\x1b]8;;https://x\x1b\\link", "textlink"},
		{"\x1b]0;no end, all is shown", "]0;no end, all is shown"},
		{"\x1b[2Jx\x1b(By\x1bcz", "xyz"},
		{"10%\r50%\r100%\r\ndone", "100%\ndone"},
		{"a\x00b\x7fc\u0085d\u202ee", "abcde"},
		{"\xff", "\uFFFD"},
		{"\x1b[", "["},
	} {
		if got := Printable(tt.in); got != tt.want {
			t.Errorf("Printable(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if got, want := Visible("rm\x1b]8;; \u202e x\u200b\r"), `rm\x1b]8;; \u202e x\u200b\r`; got != want {
		t.Errorf("visible = %q, want %q", got, want)
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;x\a\r\n\x9b2J")
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{Printable(text), Visible(text), OneLine(text, 20)} {
			for _, c := range got {
				if harmful(c) {
					t.Fatalf("%q came through in %q", c, got)
				}
			}
		}
	})
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{" two\n\twords ", "two words"},
		{"\x1b[1mall of\x1b[0m\rit", "all of it"},
		{"twelve columns", "twelve colu…"},
		{"十二个字的宽度是多少", "十二个字的…"},
	} {
		if got := OneLine(tt.text, 12); got != tt.want {
			t.Errorf("OneLine(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	const deep = "/a/directory/whose/path/is/longer/than/one/line"
	for _, tt := range []struct{ args, want string }{
		{`{"timeout_ms": 5, "command": "ls\n -l"}`, "ls -l"},
		{`{"path": "", "query": "deltas"}`, "deltas"},
		{`{"patch": "*** Begin Patch\n*** Update File: a.go\n*** Add File: b.go\n+x\n*** End Patch"}`, "a.go, b.go"},
		{`{}`, ""},
		{`{"n": 1}`, "n: 1"},
		{`{"agent_id": "agent-1"}`, "agent-1"},
		{`{"id": "j1", "keys": ["up"], "n": 2}`, `id: j1, keys: ["up"], n: 2`},
		{`{"question": "Which one?", "options": ["a"]}`, "Which one?"},
		{`{"plan": "# Move it\n\n1. Write **a**"}`, "Move it"},
		{`{"plan": [{"step": "a"}]}`, `plan: [{"step": "a"}]`},
		{`{"n`, `{"n`},
		{`{"file_path": ` + strconv.Quote(deep+string(filepath.Separator)+"a.go") + `}`, "a.go"},
	} {
		if got := Arguments(tt.args, deep, 40); got != tt.want {
			t.Errorf("Arguments(%s) = %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestCommandFailed(t *testing.T) {
	t.Parallel()
	for structured, want := range map[string]bool{`{"exitCode": 1}`: true, `{"exitCode": 0}`: false, "": false} {
		if got := CommandFailed(event.ToolResult{Name: "shell", Structured: []byte(structured)}); got != want {
			t.Errorf("CommandFailed with %s = %t", structured, got)
		}
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"/ws": ".", "/ws/a and /ws/b": "a and b", "/wsx": "/wsx"} {
		if got := Local(text, "/ws"); got != want {
			t.Errorf("Local(%q) = %q, want %q", text, got, want)
		}
	}
	if got := Local("/a", ""); got != "/a" {
		t.Errorf("without a directory: %q", got)
	}
}

func TestPathTail(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/b": "/a/b", "/home/ann/work": "…e/ann/work", "/home/ann/日本": "…e/ann/日本", "/a\x1b[31m/b": "/a/b"} {
		if got := PathTail(path, 11); got != want {
			t.Errorf("PathTail(%q) = %q, want %q", path, got, want)
		}
	}
}
