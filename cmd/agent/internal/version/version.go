package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker for a release.
var release = ""

// Number is the version, such as v1.2.3.
func Number() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Line is what `agent version` prints.
func Line() string {
	return fmt.Sprintf("agent %s %s/%s %s", Number(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
