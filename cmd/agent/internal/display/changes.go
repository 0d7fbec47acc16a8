package display

import (
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
)

// FileChange is a change of one file in one line: "modify main.go +3 -1".
func FileChange(f event.FileChange) string {
	parts := []string{fmt.Sprintf("%-6s", f.Kind), OneLine(f.Path, 500)}
	if f.Dir {
		parts[1] += "/"
	}
	if f.From != "" {
		parts = append(parts, "from "+OneLine(f.From, 500))
	}
	if f.Mode != "" {
		parts = append(parts, "mode "+f.Mode)
	}
	switch {
	case f.Binary:
		parts = append(parts, "binary")
	case f.Added+f.Removed > 0:
		parts = append(parts, fmt.Sprintf("+%d -%d", f.Added, f.Removed))
	}
	return strings.Join(parts, " ")
}

// Reverted describes what an undo did, or is going to do, a path a line.
func Reverted(r changes.Reverted, planned bool) string {
	var out strings.Builder
	if len(r.Steps)+len(r.Conflicts) == 0 {
		out.WriteString("All files are already as they were.\n")
	}
	for _, s := range r.Steps {
		note := ""
		if s.Merged {
			note = " (later changes are kept)"
		}
		fmt.Fprintf(&out, "  %-6s %s%s\n", s.Kind, OneLine(s.Path, 500), note)
	}
	verb := "kept"
	if planned {
		verb = "keep"
	}
	for _, c := range r.Conflicts {
		fmt.Fprintf(&out, "  %-6s %s: %s\n", verb, OneLine(c.Path, 500), c.Reason)
	}
	const most = 20
	for i, l := range r.Left {
		if i == most {
			fmt.Fprintf(&out, "  … and %d more that are not recorded\n", len(r.Left)-most)
			break
		}
		fmt.Fprintf(&out, "  %-6s %s: not recorded, since %s\n", verb, OneLine(l.Path, 500), l.Reason)
	}
	return out.String()
}
