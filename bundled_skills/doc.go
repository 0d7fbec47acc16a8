// Package bundled holds the skills that come with the program, as files.
package bundled

import "embed"

// Files holds a folder for each skill.
//
//go:embed code-review write-tests debug-failure commit-and-pr create-skill create-plugin
var Files embed.FS
