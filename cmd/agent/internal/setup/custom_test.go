package setup

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCustomCommandPrompt(t *testing.T) {
	for _, tt := range []struct{ body, args, want string }{
		{"Review $ARGUMENTS now.", " a b ", "Review a b now."},
		{"Compare $1 with $2 ($3).", "x y", "Compare x with y ()."},
		{"Write tests.", "for x", "Write tests.\n\nfor x"},
		{"Write tests.", "", "Write tests."},
		{"It costs $10 for $1.", "me", "It costs me0 for me."},
	} {
		if got := (CustomCommand{Body: tt.body}).Prompt(tt.args); got != tt.want {
			t.Errorf("%q with %q: %q, want %q", tt.body, tt.args, got, tt.want)
		}
	}
}

func TestReadCommand(t *testing.T) {
	files := fstest.MapFS{
		"c/review.md":    {Data: []byte("\ufeff---\ndescription: looks for faults\nargument-hint: FILE\n---\nReview $1.\n")},
		"c/plain.md":     {Data: []byte("Write tests.\nMany.")},
		"c/empty.md":     {Data: []byte("---\ndescription: x\n---\n")},
		"c/broken.md":    {Data: []byte("---\ndescription: [\n---\nx")},
		"c/two words.md": {Data: []byte("x")},
		"c/long.md":      {Data: []byte(strings.Repeat("x", 65<<10))},
	}
	c, err := readCommand(files, "c/review.md")
	if err != nil || c.Name != "review" || c.Summary != "looks for faults" || c.Hint != "FILE" || c.Body != "Review $1." {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := readCommand(files, "c/plain.md"); err != nil || c.Summary != "Write tests." {
		t.Errorf("%+v, %v", c, err)
	}
	for name, want := range map[string]string{"empty": "is empty", "broken": "front matter", "two words": "must not contain spaces", "long": "more than the limit"} {
		if _, err := readCommand(files, "c/"+name+".md"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
