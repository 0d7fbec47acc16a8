package highlight

import (
	"strings"
	"testing"
	"time"
)

// TestHostileCode: code that is hard to read takes a bounded time, and a language that
// was late is not tried again.
func TestHostileCode(t *testing.T) {
	t.Parallel()
	const bound = time.Minute // with much to spare for a busy machine
	for _, language := range []string{"python", "javascript", "bash", "html", "markdown", "yaml"} {
		for _, piece := range []string{"(", "\\", "\"'`", "a ", "<a b=", "*_`[", "$(${", " \n"} {
			var h Highlighter
			begun := time.Now()
			code := strings.Repeat(strings.Repeat(piece, 1000/len(piece))+"\n", maxBytes/1010)
			if got := h.Lines(language, code); got != nil && plain(got) != strings.TrimSuffix(code, "\n") {
				t.Errorf("%s, %q: it is not the code", language, piece)
			}
			if took := time.Since(begun); took > bound {
				t.Errorf("%s, %q: %s", language, piece, took)
			}
		}
	}
	late := Highlighter{limit: time.Nanosecond}
	if got := late.Lines("go", sample); got != nil || late.Known("go") {
		t.Errorf("a late language gave %d lines, and is known: %t", len(got), late.Known("go"))
	}
}
