package root

import (
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

// TestCommandWords compares the words by which a command is found before it is
// made with those that it has.
func TestCommandWords(t *testing.T) {
	for _, c := range commands {
		made := c.make(&cmdutil.IO{})
		if want := append([]string{made.Name()}, made.Aliases...); !slices.Equal(c.words, want) {
			t.Errorf("words %q make the command %q", c.words, want)
		}
	}
}
