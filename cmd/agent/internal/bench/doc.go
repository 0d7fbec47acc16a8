// Command bench runs the built agent against a model without latency and
// prints the agent's own overhead: start-up, tool calls, output, streaming,
// memory, extensions, how the cost of a turn grows with the session, long sessions
// and many.
//
//	go run ./cmd/agent/internal/bench [-runs N] [-only TEXT] [-check] [-page docs/performance.md]
//
// Next to the agent it measures the yardstick, a minimal program that does the
// same work with only net/http and os/exec, on the same machine in the same
// minute: comparing them separates the agent's share from the machine's. Each
// run is a separate process in a fresh workspace and home.
//
// Times are wall times of the whole process, including start and exit. Peak
// memory is the resident set that the kernel reports; it needs Linux or macOS,
// as do the scenarios' shell commands.
package main
