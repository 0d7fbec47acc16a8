package startheap

import (
	"os"
	"runtime"
	"runtime/debug"
)

func init() { postpone() }

// postpone puts the first garbage collection off from 4 MB of heap to 16. After
// it the runtime's default holds again, and GOGC always does.
func postpone() {
	if os.Getenv("GOGC") != "" {
		return
	}
	was := debug.SetGCPercent(400)
	garbage := new(*byte) // a pointer, which the runtime does not put together with other values
	runtime.AddCleanup(garbage, func(percent int) { debug.SetGCPercent(percent) }, was)
}
