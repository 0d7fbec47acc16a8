package prelude

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/seed-009c0928/agent/cmd/agent/internal/version"
)

func init() {
	// Anything else about the command line, and an error, is for the command.
	if len(os.Args) == 2 && (os.Args[1] == "version" || os.Args[1] == "--version") {
		if _, err := fmt.Println(version.Line()); err == nil {
			os.Exit(0)
		}
	}
	postpone()
}

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
