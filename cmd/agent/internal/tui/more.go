package tui

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// maxMoreBytes limits the text that is shown in full.
const maxMoreBytes = 4 << 20

// more is the text that was last truncated; a key expands it.
type more struct {
	title  string
	text   string
	output *event.Output // the whole, if text is only a part
	diff   bool
	file   string // that the text shows; "" if it is something else
}

// keepMore keeps a call's result for expand, if it was truncated.
func (s *scene) keepMore(c *call, b event.ToolResult, diff string, shown int) {
	text := b.Content.Text()
	if diff != "" {
		text = diff
	}
	if s.brief || b.Output == nil && strings.Count(strings.TrimRight(text, "\n"), "\n") < shown {
		return
	}
	s.more = &more{title: strings.TrimSpace(c.name + " " + c.args), text: text, output: b.Output, diff: diff != "", file: shownFile(c, b)}
	if diff != "" {
		s.more.output = nil
	}
}

// lines formats the whole text.
func (m *more) lines(s *scene, width int) []string {
	text, cut := m.whole()
	all := strings.Split(strings.TrimRight(s.relative(display.Printable(text)), "\n"), "\n")
	var out []string
	if m.diff {
		whole := *s
		whole.full, whole.width = true, width
		out = whole.diff(strings.Join(all, "\n"), len(all))
	} else if m.file != "" {
		out = s.fileLines(m.file, all, width, "")
	} else {
		for _, l := range all {
			out = append(out, s.fold(plain, untab(l), width, "", "  ")...)
		}
	}
	if cut {
		out = append(out, s.paint(dim, "… the full output is in "+m.output.Path))
	}
	return out
}

// whole returns the text, and whether it is truncated.
func (m *more) whole() (text string, cut bool) {
	if m.output == nil {
		return m.text, false
	}
	r, err := m.output.Open()
	if err != nil {
		return fmt.Sprintf("%s\n(cannot read the full output: %v)", m.text, err), false
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxMoreBytes+1))
	if err != nil {
		return fmt.Sprintf("%s\n(cannot read the full output: %v)", m.text, err), false
	}
	if len(data) > maxMoreBytes {
		return string(data[:maxMoreBytes]), true
	}
	return string(data), false
}
