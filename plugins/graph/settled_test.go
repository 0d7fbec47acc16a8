package graph

import (
	"testing"
	"time"
)

// TestSettled: a file that was just emptied is read until it has a text again, for a
// moment; one that is empty for longer, or always was, is believed at once.
func TestSettled(t *testing.T) {
	full := &fileFacts{hash: contentHash([]byte("package a\n"))}
	soon := time.Now().Add(time.Hour) // never settled, however slow the machine is
	for _, c := range []struct {
		what     string
		old      *fileFacts
		modified time.Time
		filled   int // the reading that finds a text
		reads    int
	}{
		{"being written", full, soon, 3, 3},
		{"emptied", full, soon, 99, 10},
		{"emptied long ago", full, time.Time{}, 99, 1},
		{"new", nil, soon, 99, 1},
		{"always empty", &fileFacts{hash: contentHash(nil)}, soon, 99, 1},
	} {
		reads := 0
		data, err := settled(source{modified: c.modified}, c.old, func() ([]byte, error) {
			if reads++; reads < c.filled {
				return nil, nil
			}
			return []byte("package a\n"), nil
		})
		if err != nil || reads != c.reads || len(data) > 0 != (reads == c.filled) {
			t.Errorf("%s: read %d times, want %d; found %q, %v", c.what, reads, c.reads, data, err)
		}
	}
}
