// Command agent is a coding agent for the terminal. See docs/cli.md.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/root"
)

func main() {
	postponeGC()
	os.Exit(root.Main())
}

// postponeGC puts the first garbage collection off from 4 MB of heap to 16: what
// a start allocates is little more than 4 MB, and most of it stays. After the
// first one the runtime's default holds again, and GOGC always does.
func postponeGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	was := debug.SetGCPercent(400)
	garbage := new(*byte) // a pointer, which the runtime does not put together with other values
	runtime.AddCleanup(garbage, func(percent int) { debug.SetGCPercent(percent) }, was)
}
