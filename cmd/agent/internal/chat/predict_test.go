package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/env"
)

// TestPredict: what a command or a foreign tool would change is told only if it is
// certain from its text.
func TestPredict(t *testing.T) {
	t.Parallel()
	e := env.NewMemory("/w", map[string]string{"a.txt": "one\ntwo\n", "b.txt": "x\n"})
	for _, tt := range []struct{ tool, args, want string }{
		{"shell", "cat >n.txt <<'EOF'\n$HOME \\ `x`\nEOF\n", "n.txt - → $HOME \\ `x`\n"},
		{"shell", "cat <<EOF >>a.txt\nthree\nEOF", "a.txt one\ntwo\n → one\ntwo\nthree\n"},
		{"shell", "cat >n.txt <<EOF\n$HOME\nEOF\n", ""},
		{"shell", "mkdir -p d && echo 'hello  you' > d/x && echo more >>d/x", "d/x - → hello  you\nmore\n"},
		{"shell", "sed -i 's/two/TWO/' a.txt", "a.txt one\ntwo\n → one\nTWO\n"},
		{"shell", "sed -i s,o,0,g a.txt b.txt", "a.txt one\ntwo\n → 0ne\ntw0\n"},
		{"shell", "sed -i 's/t.o/TWO/' a.txt", ""},
		{"shell", "sed -i '/two/d' a.txt", ""},
		{"shell", "rm -f b.txt", "b.txt x\n → -"},
		{"shell", "rm *.txt", ""},
		{"shell", "rm -r .", ""},
		{"shell", "echo x > /etc/passwd", ""},
		{"shell", "echo $X > a.txt", ""},
		{"shell", "make; echo x > a.txt", ""},
		{"shell", "if true; then echo x > a.txt; fi", ""},
		{"shell", "echo x > a.txt &", ""},
		{"mcp__fs__write_file", `{"path":"/w/a.txt","content":"new\n"}`, "/w/a.txt one\ntwo\n → new\n"},
		{"mcp__fs__edit_file", `{"path":"a.txt","edits":[{"oldText":"one","newText":"1"},{"oldText":"two","newText":"2"}]}`, "a.txt one\ntwo\n → 1\n2\n"},
		{"plugin", `{"file_path":"a.txt","old_string":"o","new_string":"0"}`, ""},
		{"plugin", `{"file_path":"/etc/x","content":"0"}`, ""},
		{"plugin", `{"query":"a.txt"}`, ""},
	} {
		args := tt.args
		if tt.tool == "shell" {
			data, _ := json.Marshal(map[string]string{"command": tt.args})
			args = string(data)
		}
		var got []string
		for _, c := range predict(t.Context(), e, tt.tool, args) {
			got = append(got, fmt.Sprintf("%s %s → %s", c.Path, text(c.Before), text(c.After)))
		}
		if s := strings.Join(got, "|"); s != tt.want {
			t.Errorf("%s %s\npredicts %q\nwant     %q", tt.tool, tt.args, s, tt.want)
		}
	}
}

func text(data []byte) string {
	if data == nil {
		return "-"
	}
	return string(data)
}
