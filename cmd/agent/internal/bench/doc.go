// Command bench runs the built agent against a model without latency and
// prints what the agent itself costs: start-up, tool calls, output, streaming,
// memory, and how the cost of a turn grows with the session.
//
//	go run ./cmd/agent/internal/bench [-runs N] [-only TEXT] [-check]
//
// Beside the agent it measures the yardstick, a minimal program that does the
// same work with net/http and os/exec and nothing else, on the same machine in
// the same minute: the numbers of the two tell the agent's share from the
// machine's. Each run is a process of its own in a fresh workspace and home.
//
// Times are wall time of the whole process, start and exit included. Peak
// memory is the resident set that the kernel accounts to the process; it needs
// Linux or macOS, as do the scenarios' shell commands.
package main
