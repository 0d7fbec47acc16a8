package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns an expression that is compiled on first use.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
