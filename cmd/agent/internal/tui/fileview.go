package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/lazy"
)

// numberedLine is a line of a file as the tool read_file shows it.
var numberedLine = lazy.Regexp(`^( *\d+ \| )(.*)$`)

// shownFile returns the file that a call read, or "".
func shownFile(c *call, b event.ToolResult) string {
	if b.Name != "read_file" || b.IsError {
		return ""
	}
	return c.args
}

// fileLines formats the numbered lines of a file, highlighted if possible.
func (s *scene) fileLines(file string, lines []string, width int, margin string) []string {
	var numbers, texts []string
	for _, l := range lines {
		m := numberedLine().FindStringSubmatch(l)
		if m == nil {
			break
		}
		numbers, texts = append(numbers, m[1]), append(texts, m[2])
	}
	var spans [][]span
	if s.look != nil {
		spans = s.code(s.look.code.Language(file), strings.Join(texts, "\n")+"\n")
	}
	var out []string
	for i, l := range lines {
		line := []span{{untab(l), plain}}
		rest := margin
		if i < len(numbers) {
			line = []span{{numbers[i], dim}, {untab(texts[i]), plain}}
			rest += strings.Repeat(" ", ansi.StringWidth(numbers[i]))
			if len(spans) == len(numbers) {
				line = append(line[:1:1], spans[i]...)
			}
		}
		out = append(out, indent(s.wrap(line, within(width, len(rest))), margin, rest)...)
	}
	return out
}
