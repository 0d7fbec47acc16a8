package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/preview"
)

// call is a running tool call.
type call struct {
	id, name  string
	args      string // the most important argument
	since     time.Time
	output    lastLines
	progress  string
	denied    string // why it may not run
	announced bool   // its start was printed, on a plain terminal
}

func (s *scene) call(id string) *call {
	for _, c := range s.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (s *scene) toolResult(id string, b event.ToolResult) {
	c := s.call(id)
	if c == nil {
		c = &call{id: id, name: display.VisibleLine(b.Name, 80)}
	}
	s.calls = slices.DeleteFunc(s.calls, func(other *call) bool { return other.id == id })
	if p, ok := b.Plan(); ok {
		s.setPlan(p)
		return
	}
	if b.Name == event.AskTool && !b.IsError {
		s.add("tool", s.fold(plain, c.args+" → "+answerOf(b), s.width, s.paint(yellow, "? "), "  ")...)
		return
	}
	s.add("tool", s.toolLines(c, b)...)
}

// answerOf returns the user's answer to the model's question.
func answerOf(b event.ToolResult) string {
	var result struct{ Answer string }
	if json.Unmarshal(b.Structured, &result) != nil || result.Answer == "" {
		return "no answer"
	}
	return display.OneLine(result.Answer, 1000)
}

// Limits of the lines that are shown of a result.
const (
	maxDiffLines   = 30
	maxFailedLines = 10
	maxOutputLines = 4

	plainWidth = 160 // of a line without a terminal's width
)

// toolLines formats a call's result: a line, and below it the diff, or the end
// of a command's or an error's output.
func (s *scene) toolLines(c *call, b event.ToolResult) []string {
	failed := b.IsError || display.CommandFailed(b)
	mark, st := "✓", green
	if failed {
		mark, st = "✗", red
	}
	text := strings.TrimRight(s.relative(display.Printable(b.Content.Text())), "\n")
	lines, missing := resultLines(text, b)
	if c.denied != "" && b.IsError {
		lines, missing = strings.Split(c.denied, "\n"), 0 // without the advice that the model gets
	}
	count := display.Plural(len(lines)+missing, "line")
	if missing < 0 {
		count = "long output"
	}
	summary := ""
	var details []string
	diff := diffOf(b)
	if s.width == 0 && b.Meta["diff"] == nil {
		diff = "" // a written file, which is long to hear or to log
	}
	switch {
	case s.width == 0 && diff == "" && text != "" && len(lines) == 1:
		summary = display.Clip(lines[0], plainWidth)
	case b.IsError && len(lines) == 1:
		details = s.detail(lines, missing, maxFailedLines, true)
	case diff != "":
		added, removed := countDiff(diff)
		summary = fmt.Sprintf("+%d −%d", added, removed)
		details = s.diff(diff, maxDiffLines)
	case b.IsError || failed:
		summary = count
		details = s.detail(lines, missing, maxFailedLines, b.IsError)
	case text == "":
		summary = "no output"
	case s.full && shownFile(c, b) != "":
		summary = count
		details = s.fileLines(c.args, lines, s.width, "  ")
	case b.Name == "shell" || s.verbose:
		summary = count
		details = s.detail(lines, missing, maxOutputLines, false)
	default:
		summary = count
	}
	if s.brief {
		details = nil
	}
	s.keepMore(c, b, diff, len(details))
	tail := display.Duration(time.Duration(b.DurationMS) * time.Millisecond)
	if summary != "" {
		tail = summary + " · " + tail
	}
	return append([]string{s.headline(s.paint(st, mark), c.name, c.args, tail)}, details...)
}

// resultLines returns the lines of a result without the model's hint where the rest of
// a long output is, and how many are missing in its middle, -1 if that is unknown.
func resultLines(text string, b event.ToolResult) (lines []string, missing int) {
	lines = strings.Split(text, "\n")
	last := len(lines) - 1
	if b.Output == nil || last == 0 || !strings.HasPrefix(lines[last], "[Full output: ") {
		return lines, 0
	}
	if b.Output.Text == "" {
		return lines[:last], -1
	}
	whole := strings.Count(strings.TrimRight(b.Output.Text, "\n"), "\n") + 1
	return lines[:last], max(0, whole-last)
}

// headline formats a call in one line: mark, tool, argument and result.
func (s *scene) headline(mark, name, arg, tail string) string {
	room := 1 << 20
	if s.width > 0 {
		room = s.width - ansi.StringWidth(mark) - ansi.StringWidth(name) - ansi.StringWidth(tail) - 5
	}
	line := mark + " " + s.paint(bold, name)
	if arg != "" && room >= 4 {
		line += " " + display.Clip(arg, room)
	}
	if tail != "" {
		line += s.paint(dim, " · "+tail)
	}
	if s.width > 0 {
		line = display.Clip(line, s.width)
	}
	return line
}

// detail formats the first or the last lines of a text, and the number of hidden
// ones, with those that are missing in its middle.
func (s *scene) detail(lines []string, missing, most int, first bool) []string {
	var out []string
	if s.full {
		for _, l := range lines {
			out = append(out, s.fold(dim, untab(l), s.width, "  ", "    ")...)
		}
		return out
	}
	hidden := len(lines) - most
	count := display.Plural(hidden+missing, "line")
	if missing < 0 {
		count = "many lines"
	}
	if hidden > 0 && !first {
		out = append(out, "  "+s.paint(dim, "… "+count+" above"))
		lines = lines[hidden:]
	}
	for i, l := range lines {
		if i == most {
			out = append(out, "  "+s.paint(dim, "… "+display.Plural(hidden, "more line")))
			break
		}
		out = append(out, "  "+s.paint(dim, display.Clip(untab(l), s.detailWidth())))
	}
	return out
}

// detailWidth is the maximum width of a result's lines.
func (s *scene) detailWidth() int {
	if s.width <= 0 {
		return plainWidth
	}
	return s.width - 2
}

// diffOf returns what a call changed as a unified diff, "" if that is unknown. The
// result of a written file has no diff, but its edits.
func diffOf(b event.ToolResult) string {
	var diff string
	if json.Unmarshal(b.Meta["diff"], &diff) == nil {
		return diff
	}
	var out strings.Builder
	path, shift := "", 0 // of the lines before an edit by those above it
	for _, e := range b.Edits() {
		c := preview.Change{Path: e.Path, Before: []byte(e.Old), After: []byte(e.New)}
		head, hunks, _ := strings.Cut(c.Diff(), "\n@@ ")
		if e.Path != path {
			path, shift = e.Path, 0
			out.WriteString(head + "\n")
		}
		out.WriteString(moved("@@ "+hunks, max(0, e.Line-1)-shift, max(0, e.Line-1)))
		shift += strings.Count(e.New, "\n") - strings.Count(e.Old, "\n")
	}
	return out.String()
}

// moved returns hunks of a unified diff with other line numbers.
func moved(hunks string, before, after int) string {
	var out strings.Builder
	for line := range strings.SplitAfterSeq(hunks, "\n") {
		var b, a, bn, an int
		if n, _ := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &b, &bn, &a, &an); n == 4 {
			line = fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", b+before, bn, a+after, an)
		}
		out.WriteString(line)
	}
	return out.String()
}

func countDiff(diff string) (added, removed int) {
	body := false
	for l := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(l, "@@"):
			body = true
		case body && strings.HasPrefix(l, "+"):
			added++
		case body && strings.HasPrefix(l, "-"):
			removed++
		}
	}
	return added, removed
}

func progress(b event.ToolProgress) string {
	text := display.OneLine(b.Message, 60)
	if b.Total > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%d %% %s", int(100*b.Done/b.Total), text))
	}
	return text
}

// lastLines keeps the end of an output.
type lastLines struct{ text string }

func (l *lastLines) add(text string) {
	const most = 4 << 10
	l.text += text
	if len(l.text) > 2*most {
		l.text = l.text[len(l.text)-most:]
	}
}

// last returns at most n lines.
func (l *lastLines) last(n int) []string {
	text := strings.TrimRight(display.Printable(l.text), "\n ")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}
