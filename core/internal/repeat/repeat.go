// Package repeat finds tool calls that go round in circles.
package repeat

import (
	"crypto/sha256"
	"slices"

	"github.com/seed-009c0928/agent/core/model"
)

// longest is the number of calls in the longest pattern that is looked for.
const longest = 3

// Add puts the signatures of calls behind those of the calls before them, and
// keeps the last of a window.
func Add(recent []string, calls []model.ToolCall, window int) []string {
	for _, c := range calls {
		sum := sha256.Sum256([]byte(c.Args)) // arguments may be long
		recent = append(recent, c.Name+":"+string(sum[:]))
	}
	if over := len(recent) - window; over > 0 {
		recent = slices.Delete(recent, 0, over)
	}
	return recent
}

// Pattern returns the length of the pattern that fills the window's largest
// multiple of that length, or 0.
func Pattern(recent []string, window int) int {
	if len(recent) < window {
		return 0
	}
	for n := 1; n <= longest && 2*n <= window; n++ {
		last := recent[len(recent)-window/n*n:]
		if slices.Equal(last[n:], last[:len(last)-n]) {
			return n
		}
	}
	return 0
}
