package skills

import (
	"regexp"
	"sync"
)

// lazily returns an expression that is compiled on first use: most commands need
// none.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
