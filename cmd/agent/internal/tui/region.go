package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// region returns the rows at the bottom of the screen and the cursor's position
// in them. If they do not fit, rows above the input are omitted.
func (l *lineScreen) region() (rows []string, x, y int) {
	width, height := l.screen.width, max(2, l.screen.height-1)
	if p := l.picking(); p != nil {
		rows, x, y = l.pickRows(p, width, height)
	} else if l.dialog != nil {
		rows, x, y = l.dialogRows(width, height)
	} else {
		rows, x, y = l.inputRows(width, height)
	}
	top := l.running(width, max(0, height-len(rows)))
	if l.scene.kind != "" && len(top)+len(rows)+4 < height {
		if len(top) > 0 {
			top = append([]string{""}, top...)
		}
		top = append(top, "")
	}
	rows = append(top, rows...)
	for i, r := range rows {
		rows[i] = display.Clip(r, width)
	}
	return rows, x, y + len(top)
}

// inputRows returns the status, the input box, and completions.
func (l *lineScreen) inputRows(width, height int) (rows []string, x, y int) {
	rows = append(rows, l.statusRow())
	if l.steps != nil {
		return rows, 0, 0
	}
	box, x, y := l.editor.view(width, height-2)
	rows = append(rows, box...)
	if s := l.editor.search; s != nil {
		rows = append(rows, l.scene.paint(dim, "  search: "+s.term+"▏ (Ctrl+R: older, Esc: cancel)"))
	}
	room := min(6, height-len(rows))
	return append(rows, l.listRows(room)...), x, y + 1
}

// listRows lists the completions that were requested, or the commands that match
// the one being typed.
func (l *lineScreen) listRows(room int) []string {
	list := l.list
	var commands []Command
	if word := l.editor.word(); strings.HasPrefix(word, "/") && l.dialog == nil {
		commands = l.commands()
	}
	if len(list) == 0 || room <= 0 {
		return nil
	}
	summaries := map[string]string{}
	for _, c := range commands {
		if _, ok := summaries["/"+c.Name]; !ok {
			summaries["/"+c.Name] = strings.TrimSpace(c.Args + "  " + c.Summary)
		}
	}
	from := 0
	if l.at >= room-1 {
		from = min(l.at-room+2, len(list)-room+1)
	}
	var rows []string
	for i := from; i < len(list); i++ {
		if len(rows) == room-1 && len(list)-i > 1 {
			rows = append(rows, l.scene.paint(dim, fmt.Sprintf("  … %d more", len(list)-i)))
			break
		}
		pointer, st := "  ", plain
		if i == l.at {
			pointer, st = l.scene.paint(cyan, "› "), bold
		}
		row := pointer + l.scene.paint(st, display.OneLine(list[i], 200))
		if s := summaries[list[i]]; s != "" {
			row += l.scene.paint(dim, "  "+s)
		}
		rows = append(rows, row)
	}
	return rows
}

// elapsed is the time since t, in whole seconds.
func (l *lineScreen) elapsed(t time.Time) string {
	d := l.scene.now().Sub(t).Truncate(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return display.Duration(d)
}

// minReview is how many rows a review has at least, if the screen is not very low.
const minReview = 3

// dialogRows returns a question, what it is about, and its options.
func (l *lineScreen) dialogRows(width, height int) (rows []string, x, y int) {
	d := l.dialog
	head := l.scene.head(d)
	below, x, y := l.answerRows(width, height-len(head))
	if len(head)+len(below) > height {
		if !l.inScrollback { // no part of the question may be cut off
			l.inScrollback = true
			l.scene.add("question", head...)
		}
		head = head[:1]
		below, x, y = l.answerRows(width, height-1)
	}
	if d.review != nil {
		head = append(head, l.reviewRows(height-len(head)-len(below))...)
	}
	return append(head, below...), x, y + len(head)
}

// answerRows returns the options of a question or the box of its answer, for room
// rows, if that is possible.
func (l *lineScreen) answerRows(width, room int) (rows []string, x, y int) {
	if d := l.dialog; d.typing() && l.typed != nil {
		rows = l.scene.fold(bold, strings.TrimSpace(d.label()+" "+d.hint()), width, "  ", "  ")
		var box []string
		y = len(rows)
		box, x, _ = l.typed.view(width, 3)
		rows = append(rows, box...)
		if l.inputError != "" {
			rows = append(rows, l.scene.paint(red, "  "+display.Printable(l.inputError)))
		}
		hint := "  Enter: answer · Esc: back"
		if l.strayEnter() {
			hint = "  pause typing, then Enter: answer · Esc: back"
		}
		rows = append(rows, l.scene.paint(dim, hint))
	} else {
		rows, y = l.optionRows(room)
	}
	if !l.editor.empty() {
		rows = append(rows, l.scene.paint(dim, "  (unsent: "+display.OneLine(l.editor.text(), 60)+")"))
	}
	return rows, x, y
}

// optionRows returns the options of a question.
func (l *lineScreen) optionRows(room int) (rows []string, at int) {
	d := l.dialog
	room--
	if d.review != nil {
		room -= minReview
	}
	rows, at = l.scene.choices(d, l.selected, max(3, room))
	hint := "  press a key, or Enter to answer · Esc: " + d.dismissed()
	if len(rows) < len(d.options) {
		hint = "  ↑↓ more answers · Enter answers · Esc: " + d.dismissed()
	}
	if n := l.Asker.waiting(); n > 0 {
		hint += fmt.Sprintf(" · %d more waiting", n)
	}
	if l.waitsForPause() {
		hint = "  pause typing to answer"
	}
	return append(rows, l.scene.paint(dim, hint)), at
}

// running returns the rows about running work, at most the given number.
func (l *lineScreen) running(width, most int) []string {
	s := l.scene
	var rows []string
	if s.answer != nil {
		rows = append(rows, s.answer.tail(width)...)
	}
	if !s.thinkingFrom.IsZero() {
		text := s.thought.String()
		if i := strings.LastIndexByte(strings.TrimRight(text, "\n"), '\n'); i >= 0 {
			text = text[i+1:]
		}
		rows = append(rows, s.paint(dim, "∴ thinking · "+display.OneLine(text, max(10, width-14))))
	}
	spin := s.paint(cyan, spinner[l.spin%len(spinner)])
	for _, c := range s.calls {
		tail := l.elapsed(c.since)
		if c.progress != "" {
			tail = c.progress + " · " + tail
		}
		rows = append(rows, s.headline(spin, c.name, c.args, tail))
		for _, o := range c.output.last(maxOutputLines) {
			rows = append(rows, s.paint(dim, display.Clip("  "+untab(s.relative(o)), width)))
		}
	}
	if s.shell != "" {
		rows = append(rows, "  "+untab(display.OneLine(s.shell, width-2)))
	}
	rows = append(rows, l.queueRows(width)...)
	return rows[max(0, len(rows)-most):]
}

// maxQueueRows limits the queued messages that are shown.
const maxQueueRows = 4

// queueRows lists the queued messages.
func (l *lineScreen) queueRows(width int) (rows []string) {
	messages := l.scene.queue.shown()
	for i, m := range messages {
		if i == maxQueueRows && len(messages) > maxQueueRows+1 {
			rows = append(rows, l.scene.paint(dim, fmt.Sprintf("↳ … %d more", len(messages)-i)))
			break
		}
		rows = append(rows, l.scene.paint(dim, "↳ queued: "+display.OneLine(m.label, max(10, width-12))))
	}
	if len(rows) > 0 && !l.work.busy {
		rows = append(rows, l.scene.paint(yellow, "  Not sent yet: Enter sends, Alt+Up edits, /queue changes"))
	}
	return rows
}
