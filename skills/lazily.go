package skills

import (
	"regexp"
	"sync"
)

// lazily returns an expression that is compiled when it is asked for: most
// commands need none of them.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
