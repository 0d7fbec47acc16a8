// Package cli is the command line: cobra commands, each an options struct and
// a run function over injected streams. It assembles everything through
// sdk/agent and uses nothing that another host could not use.
package cli
