package tui

import (
	"runtime/debug"
	"time"
)

// calm is how long after a start, or after work, memory is given back.
const calm = time.Second

// giveBack returns memory to the operating system that a start or work needed: a
// session waits for its user most of the time.
func giveBack() {
	debug.FreeOSMemory()
	dropProgramPages()
}
