package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
)

// TestWrittenFile: a file that was written without a question is shown, although the
// result does not repeat its text.
func TestWrittenFile(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 30 {
		fmt.Fprintf(&before, "line %d\n", i+1)
		switch i {
		case 3:
			fmt.Fprint(&after, "new 4\nmore\n")
		case 27:
			fmt.Fprint(&after, "new 28\n")
		default:
			fmt.Fprintf(&after, "line %d\n", i+1)
		}
	}
	for _, tt := range []struct {
		name string
		c    preview.Change
		want []string
	}{
		{"created", preview.Change{Path: "a.txt", After: []byte("first\nsecond\n")}, []string{"+2 −0", " 1 +first", " 2 +second"}},
		{"overwritten", preview.Change{Path: "a.txt", Before: []byte(before.String()), After: []byte(after.String())}, []string{
			"+3 −2", " 4 -line 4", " 4 +new 4", " 5 +more", "⋯", "28 -line 28", "29 +new 28", "30  line 29",
		}},
	} {
		b := event.ToolResult{Name: "write_file", Content: model.TextParts("Done."), Meta: preview.Meta(tt.c)}
		delete(b.Meta, "diff")
		has(t, strings.Join(newScene(painter{}, 80, "/w").toolLines(&call{name: "write_file", args: "a.txt"}, b), "\n"), tt.want...)
		if got := newScene(painter{}, 0, "/w").toolLines(&call{name: "write_file", args: "a.txt"}, b); len(got) != 1 || !strings.Contains(got[0], "Done.") {
			t.Errorf("%s, line by line: %q", tt.name, got)
		}
	}
}
