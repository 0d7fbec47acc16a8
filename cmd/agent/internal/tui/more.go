package tui

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// Limits of expanded text.
const (
	maxMoreBytes = 256 << 10
	maxMoreLines = 2_000
)

// more is the text that was last truncated; a key expands it.
type more struct {
	title  string
	text   string
	output *event.Output // the whole, if text is only a part
	diff   bool
}

// keepMore keeps a call's result for expand, if it was truncated.
func (s *scene) keepMore(title string, b event.ToolResult, diff string, shown int) {
	text := b.Content.Text()
	if diff != "" {
		text = diff
	}
	if s.brief || b.Output == nil && strings.Count(strings.TrimRight(text, "\n"), "\n") < shown {
		return
	}
	s.more = &more{title: title, text: text, output: b.Output, diff: diff != ""}
	if diff != "" {
		s.more.output = nil
	}
}

// expand shows the last truncated text in full.
func (s *scene) expand() {
	m := s.more
	if m == nil {
		s.note(dim, "Nothing to expand.")
		return
	}
	s.more = nil
	text, cut := m.whole()
	lines := strings.Split(strings.TrimRight(s.relative(display.Printable(text)), "\n"), "\n")
	hidden := len(lines) - maxMoreLines
	if hidden > 0 {
		lines = lines[:maxMoreLines]
	}
	s.separate()
	s.add("more", display.Clip(s.paint(bold, m.title), s.columns()))
	if m.diff {
		s.add("more", s.diff(strings.Join(lines, "\n"), maxMoreLines)...)
	} else {
		for _, l := range lines {
			s.add("more", s.fold(dim, untab(l), s.width, "  ", "  ")...)
		}
	}
	switch {
	case cut && m.output.Path != "":
		s.add("more", s.paint(dim, "  … the full output is in "+m.output.Path))
	case hidden > 0:
		s.add("more", s.paint(dim, "  … "+display.Plural(hidden, "more line")))
	}
	s.separate()
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
