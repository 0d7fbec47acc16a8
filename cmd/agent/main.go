// Command agent is a coding agent for the terminal. See docs/cli.md.
package main

import (
	"os"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/root"
	_ "github.com/seed-009c0928/agent/cmd/agent/internal/prelude"
)

func main() {
	os.Exit(root.Main())
}
