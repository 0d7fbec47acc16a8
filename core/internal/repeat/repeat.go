// Package repeat detects repeating patterns of tool calls, and reads whose result
// the model has already.
package repeat

import (
	"crypto/sha256"
	"slices"

	"github.com/seed-009c0928/agent/core/model"
)

// longest is the length of the longest pattern to look for.
const longest = 3

// Add appends the signatures of calls to recent ones, and keeps as many as the
// window holds.
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

// Pattern returns the length of the pattern that the last calls of the window
// repeat, or 0.
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
