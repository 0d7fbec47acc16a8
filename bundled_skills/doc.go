// Package bundled_skills holds the skills that come with the program, as files.
//
//nolint:revive,staticcheck // the folder's name is part of the project's layout
package bundled_skills

import "embed"

// Files holds a folder for each skill.
//
//go:embed code-review write-tests debug-failure commit-and-pr create-skill create-plugin
var Files embed.FS
