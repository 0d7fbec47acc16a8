package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/changes"
)

// maxDiffRows limits the lines of diffs that /diff shows.
const maxDiffRows = 500

// cmdDiff shows what the session changed in files, input by input.
func (c *chat) cmdDiff(ctx context.Context, _ string) (string, error) {
	h, err := c.session.History(ctx)
	if err != nil {
		return "", err
	}
	return diffReport(h.Turns, c.session.ID()), nil
}

// diffReport lists changes as Markdown.
func diffReport(turns []changes.Turn, id string) string {
	var b strings.Builder
	rows, left := 0, 0
	for _, t := range turns {
		if len(t.Changes) == 0 {
			continue
		}
		fmt.Fprintf(&b, "**#%d** %s\n\n", t.Seq, display.OneLine(t.Input, 100))
		for _, change := range t.Changes {
			undone := ""
			if change.Undone() {
				undone = " (undone)"
			}
			for _, f := range change.Files {
				fmt.Fprintf(&b, "- %s%s\n", display.FileChange(f), undone)
				n := strings.Count(f.Diff, "\n")
				switch {
				case f.Diff == "":
				case rows+n > maxDiffRows:
					left++
				default:
					rows += n
					fmt.Fprintf(&b, "\n%s\n", fenced("diff", f.Diff))
				}
			}
			for _, f := range change.Unrecorded {
				fmt.Fprintf(&b, "- not recorded: %s: %s\n", display.OneLine(f.Path, 500), f.Reason)
			}
			if change.Left > 0 {
				fmt.Fprintf(&b, "- … and %s more\n", display.Plural(change.Left, "file"))
			}
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "This session has changed no files."
	}
	if left > 0 {
		fmt.Fprintf(&b, "The diffs of %s are left out; `agent sessions diff %s` shows all.", display.Plural(left, "file"), id)
	}
	return b.String()
}

// fenced returns a code block, with a fence that the code does not have.
func fenced(language, code string) string {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(code, "\n") + "\n" + fence
}
