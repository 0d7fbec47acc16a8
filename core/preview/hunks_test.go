package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/preview"
)

// FuzzHunks: of any change all hunks make what comes after, none what was before, and
// each choice is the opposite of the other choice.
func FuzzHunks(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n")
	f.Add("", "x")
	f.Add("x", "")
	f.Add("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nzwölf\n")
	f.Add("a\r\nb\r\n", "a\r\nc")
	f.Fuzz(func(t *testing.T, before, after string) {
		c := preview.Change{Path: "f", Before: []byte(before), After: []byte(after)}
		hunks := c.Hunks()
		all := make([]bool, len(hunks))
		if hunks == nil {
			return
		}
		if got := c.Take(all); string(got.After) != before {
			t.Errorf("none of the hunks: %q, want %q", got.After, before)
		}
		for i := range all {
			all[i] = true
		}
		if got := c.Take(all); string(got.After) != after {
			t.Errorf("all hunks: %q, want %q", got.After, after)
		}
	})
}

func TestHunks(t *testing.T) {
	t.Parallel()
	var before strings.Builder
	for i := range 30 {
		fmt.Fprintf(&before, "line %d\n", i)
	}
	after := strings.NewReplacer("line 2\n", "two\n", "line 15\n", "", "line 29\n", "line 29\nmore").Replace(before.String())
	c := preview.Change{Path: "f", Before: []byte(before.String()), After: []byte(after)}
	if n := len(c.Hunks()); n != 3 {
		t.Fatalf("%d hunks", n)
	}
	got := string(c.Take([]bool{true, false, true}).After)
	if want := strings.NewReplacer("line 2\n", "two\n", "line 29\n", "line 29\nmore").Replace(before.String()); got != want {
		t.Errorf("two of three hunks make\n%s", got)
	}
	created := preview.Change{Path: "f", After: []byte("x")}
	if len(created.Hunks()) != 1 || created.Take([]bool{false}).After != nil || string(created.Take([]bool{true}).After) != "x" {
		t.Error("a new file is not one hunk")
	}
}
