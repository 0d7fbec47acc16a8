package tui

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/preview"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Review is what the user sees of the call that a question is about.
type Review struct {
	// Changes are what the call would change in files.
	Changes []preview.Change
	// Markdown says that Changes is one new document, to be rendered.
	Markdown bool
	// Args are the arguments of a call without changes, for display.
	Args string
	// Amend replaces the changes by those that the user made of them; nil if they
	// cannot be replaced.
	Amend func(changes []preview.Change)
	// AcceptEdits allows all edits from now on; nil if it cannot.
	AcceptEdits func() error

	// Predicted says that Changes are what the call probably does.
	Predicted bool

	amended bool
	rows    []string // formatted for a width
	width   int
}

// Answers to a review.
const (
	acceptEdits core.Choice = "accept-edits"
	editReview  core.Choice = "edit"
	viewReview  core.Choice = "view"
)

// reviewOptions adds the answers that a review offers.
func (d *dialog) reviewOptions(options []option) []option {
	r := d.review
	if r == nil || len(r.Changes) == 0 {
		return options
	}
	var out []option
	for _, o := range options {
		if o.reason && r.Markdown {
			o.label = "send it back, with comments"
		}
		out = append(out, o)
		if o.choice == core.ChoiceOnce && r.AcceptEdits != nil {
			out = append(out, option{key: 'm', choice: acceptEdits, label: "yes, and all edits from now on (mode accept-edits)"})
		}
	}
	if r.Amend != nil {
		out = append(out, option{key: 'e', choice: editReview, label: "edit first"})
		if !r.Markdown && hunksOf(r.Changes) != nil {
			out = append(out, option{key: 'h', choice: hunkReview, label: "take some of the changes"})
		}
	}
	return append(out, option{key: 'v', choice: viewReview, label: "view in full"})
}

// accept makes the user's version of the changes that of the call.
func (r *Review) accept() {
	if r != nil && r.amended {
		r.Amend(r.Changes)
	}
}

// review formats what a call would do.
func (s *scene) review(r *Review) []string {
	if r == nil {
		return nil
	}
	if len(r.Changes) == 0 {
		return s.fold(plain, display.Visible(r.Args), s.width, "  ", "    ")
	}
	if r.Markdown {
		return indent(s.md.render(string(r.Changes[0].After), within(s.width, 2)), "  ", "  ")
	}
	var out []string
	if r.Predicted {
		out = append(out, "  "+s.paint(dim, "Expected, as far as it can be told from the call:"))
	}
	for _, c := range r.Changes {
		if c.Before == nil && c.After == nil {
			continue // not taken
		}
		out = append(out, s.change(c)...)
	}
	return out
}

// change formats the change of one file.
func (s *scene) change(c preview.Change) []string {
	diff := c.Diff()
	added, removed := countDiff(diff)
	what := fmt.Sprintf("+%d −%d", added, removed)
	switch {
	case c.Before == nil:
		what = "new file, " + display.Plural(added, "line")
	case c.After == nil:
		what = "deleted, " + display.Plural(removed, "line")
	}
	whole := *s
	whole.full = true
	head := s.paint(bold, display.VisibleLine(s.relative(c.Path), 200)) + s.paint(dim, " · "+what)
	if strings.ContainsRune(string(c.After), 0) || strings.ContainsRune(string(c.Before), 0) {
		return []string{"  " + head, "  " + s.paint(dim, "(binary)")}
	}
	return append([]string{"  " + head}, whole.diff(display.Visible(diff), 0)...)
}

// reviewRows returns the part of a review that has room.
func (l *lineScreen) reviewRows(room int) []string {
	r := l.dialog.review
	if r.rows == nil || r.width != l.scene.width {
		r.rows, r.width = l.scene.review(r), l.scene.width
	}
	rows := r.rows
	if len(rows) <= room || room < 2 {
		return rows[:min(len(rows), max(0, room))]
	}
	l.reviewTop = max(0, min(l.reviewTop, len(rows)-room+1))
	end := l.reviewTop + room - 1
	rest := fmt.Sprintf("  lines %d-%d of %d · PgUp PgDn scroll", l.reviewTop+1, end, len(rows))
	if !l.dialog.typing() {
		rest += " · v shows all"
	}
	return append(rows[l.reviewTop:end:end], l.scene.paint(dim, rest))
}

// viewReview shows a review on the alternate screen.
func (l *lineScreen) viewReview() {
	d := l.dialog
	l.openPager(&pager{title: display.VisibleLine(l.scene.relative(d.Title), 500), render: func(width int) []string {
		wide := *l.scene
		wide.width = width
		return wide.review(d.review)
	}})
}

// editedMsg reports that the user's editor has ended.
type editedMsg struct {
	of    *pending
	dir   *sandbox.TempDir
	files []string // "" for a deleted file
	err   error
}

// editReview opens the changed files, as they would be, in the user's editor.
func (l *lineScreen) editReview() tea.Cmd {
	msg := editedMsg{of: l.dialog.pending}
	var err error
	if msg.dir, err = sandbox.NewTempDir(); err != nil {
		l.scene.fail("%v", err)
		return nil
	}
	var names []string
	for i, c := range l.dialog.review.Changes {
		name := ""
		if c.After != nil {
			name = filepath.Join(msg.dir.Path, fmt.Sprint(i), filepath.Base(c.At))
			if err = errors.Join(os.Mkdir(filepath.Dir(name), 0o700), os.WriteFile(name, c.After, 0o600)); err != nil {
				l.scene.fail("%v", err)
				_ = msg.dir.Remove()
				return nil
			}
			names = append(names, name)
		}
		msg.files = append(msg.files, name)
	}
	return l.external(append(editorCommand(l.Env), names...), func(err error) tea.Msg {
		msg.err = err
		return msg
	})
}

// editorCommand returns the user's editor.
func editorCommand(env func(string) string) []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if words := strings.Fields(env(name)); len(words) > 0 {
			return words
		}
	}
	if runtime.GOOS == "windows" {
		return []string{"notepad"}
	}
	return []string{"vi"}
}

// external runs a program that uses the terminal.
func (l *lineScreen) external(argv []string, done func(error) tea.Msg) tea.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.tty, l.screen.out, l.screen.out
	l.screen.erase()
	l.screen.write(leaveRestore)
	l.suspended = true
	return tea.ExecProcess(cmd, done)
}

// edited takes the files from the user's editor.
func (l *lineScreen) edited(m editedMsg) {
	l.suspended = false
	l.screen.write(pasteOn)
	defer m.dir.Remove()
	if l.dialog == nil || l.dialog.pending != m.of {
		return // the question was withdrawn
	}
	if m.err != nil {
		l.scene.fail("the editor failed, so nothing has changed: %v", m.err)
		return
	}
	r := l.dialog.review
	for i, name := range m.files {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			l.scene.fail("%v", err)
			return
		}
		if string(data) != string(r.Changes[i].After) {
			r.Changes[i].After, r.amended, r.rows = data, true, nil
		}
	}
}
