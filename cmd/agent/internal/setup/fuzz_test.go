package setup

import (
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// FuzzReadCommand reads any file as a custom command, and uses it.
func FuzzReadCommand(f *testing.F) {
	f.Add([]byte("\ufeff---\ndescription: d\nargument-hint: FILE\n---\nReview $1 $ARGUMENTS.\n"), "a b")
	f.Add([]byte("---\ndescription: [\n---\nx"), "")
	f.Add([]byte("---\n---\n\xff\x00"), "$1 $ARGUMENTS")
	f.Add([]byte("---\ndescription: \"\\e[2J\\u202e\"\n---\nx"), "x")
	f.Fuzz(func(t *testing.T, data []byte, args string) {
		c, err := readCommand(fstest.MapFS{"c/x.md": {Data: data}}, "c", "c/x.md")
		if err != nil {
			return
		}
		if c.Body == "" || strings.ContainsFunc(c.Summary+c.Hint, unicode.IsControl) {
			t.Errorf("%+v", c)
		}
		if prompt := c.Prompt(args, "/w"); strings.TrimSpace(args) != "" && !strings.ContainsAny(c.Body, "$") && !strings.Contains(prompt, strings.TrimSpace(args)) {
			t.Errorf("%q is not in %q", args, prompt)
		}
	})
}
