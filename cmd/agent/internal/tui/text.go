package tui

import "strings"

// untab replaces tabs by spaces, since only the terminal knows their width.
func untab(line string) string { return strings.ReplaceAll(line, "\t", "    ") }
