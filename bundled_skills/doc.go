// Package bundled contains the skills built into the program.
package bundled

import "embed"

// Files contains a folder for each skill.
//
//go:embed code-review write-tests debug-failure commit-and-pr create-skill create-plugin
var Files embed.FS
