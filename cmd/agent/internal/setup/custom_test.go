package setup

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCustomCommandPrompt(t *testing.T) {
	for _, tt := range []struct{ body, args, want string }{
		{"Review $ARGUMENTS now.", " a b ", "Review a b now."},
		{"Compare $0 with $1 ($2).", "x 'y z'", "Compare x with y z ($2)."},
		{"Fix $issue.", "7", "Fix 7."},
		{"Status: !`git status`", "", "Status: !`git status`\n\n[The commands in !`…` were not run: run them with the tool shell, where their output belongs.]"},
		{"Write tests.", "for x", "Write tests.\n\nfor x"},
		{"Write tests.", "", "Write tests."},
		{"It costs $10 for $0.", "me", "It costs $10 for me."},
	} {
		if got := (CustomCommand{Body: tt.body, Arguments: []string{"issue"}}).Prompt(tt.args, "/w"); got != tt.want {
			t.Errorf("%q with %q: %q, want %q", tt.body, tt.args, got, tt.want)
		}
	}
}

func TestReadCommand(t *testing.T) {
	files := fstest.MapFS{
		"c/review.md":    {Data: []byte("\ufeff---\ndescription: looks for faults\nargument-hint: FILE\n---\nReview $1.\n")},
		"c/git/fix.md":   {Data: []byte("---\ndescription: fixes: an issue\nargument-hint: [ISSUE]\narguments: issue, branch\n---\nFix $issue.\n")},
		"c/plain.md":     {Data: []byte("Write tests.\nMany.")},
		"c/empty.md":     {Data: []byte("---\ndescription: x\n---\n")},
		"c/broken.md":    {Data: []byte("---\ndescription: {\n---\nx")},
		"c/two words.md": {Data: []byte("x")},
		"c/long.md":      {Data: []byte(strings.Repeat("x", 65<<10))},
	}
	c, err := readCommand(files, "c", "c/review.md")
	if err != nil || c.Name != "review" || c.Summary != "looks for faults" || c.Hint != "FILE" || c.Body != "Review $1." {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := readCommand(files, "c", "c/git/fix.md"); err != nil || c.Name != "git:fix" || c.Hint != "[ISSUE]" || strings.Join(c.Arguments, " ") != "issue branch" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := readCommand(files, "c", "c/plain.md"); err != nil || c.Summary != "Write tests." {
		t.Errorf("%+v, %v", c, err)
	}
	for name, want := range map[string]string{"empty": "is empty", "broken": "front matter", "two words": "must not contain spaces", "long": "more than the limit"} {
		if _, err := readCommand(files, "c", "c/"+name+".md"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
