package textedit_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/internal/textedit"
)

// FuzzReplace: outside of what is replaced, no byte changes.
func FuzzReplace(f *testing.F) {
	f.Add("a\r\nb\nc\r\nd", "b\nc", "x\ny\nz", false)
	f.Add("a\rb\r", "a", "\n", true)
	f.Add("\uFEFFa\na\n", "a", "b\n", true)
	f.Fuzz(func(t *testing.T, file, from, to string, all bool) {
		if from == "" || !utf8.ValidString(from) {
			t.Skip("refused by the tool, or impossible in JSON")
		}
		r, err := textedit.Parse(file).Replace(from, to, textedit.Options{All: all})
		if err != nil || r.Count != 1 || !strings.Contains(file, from) || strings.ContainsAny(from, "\r\n\uFEFF") {
			return
		}
		before, after, _ := strings.Cut(file, from)
		if !strings.HasPrefix(r.Text, before) || to != "" && !strings.HasSuffix(r.Text, after) {
			t.Errorf("%q for %q in %q: %q", to, from, file, r.Text)
		}
	})
}

func TestParseRoundTrip(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "a", "a\n", "\uFEFFa\r\nb", "a\rb\r", "a\r\nb\nc\rd\r\n", "\r\r\n\n", "\n"} {
		if got := textedit.Parse(content).Edit().String(); got != content {
			t.Errorf("%q became %q", content, got)
		}
	}
}
