package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// editor is the input box: a multi-line text, in which placeholders stand for
// long pastes, and the history of entries.
type editor struct {
	area    textarea.Model
	pastes  map[string]string // by placeholder
	pasted  int
	history []string
	at      int    // index of the shown history entry; len(history) is the draft
	draft   string // the text before the history was used
	search  *search
	undone  []string // earlier texts, for undo
	inWord  bool     // the last key was a letter
	killed  string   // what was deleted last, to insert again
	vim     *vim     // nil for the keys of a shell
}

// search is a search in the history.
type search struct {
	term  string
	found int // index in the history, -1 if none
	prior string
}

func newEditor(p painter, history []string) *editor {
	area := textarea.New()
	area.ShowLineNumbers, area.Prompt, area.CharLimit = false, "> ", 0
	area.SetPromptFunc(2, func(i textarea.PromptInfo) string {
		if i.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	area.DynamicHeight, area.MinHeight, area.MaxHeight, area.MaxContentHeight = true, 1, 8, 10_000
	area.EndOfBufferCharacter = ' '
	area.SetVirtualCursor(false)
	state := textarea.StyleState{}
	if p.colors {
		state.Prompt = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	}
	area.SetStyles(textarea.Styles{Focused: state, Blurred: state})
	keys := textarea.DefaultKeyMap()
	keys.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	for _, b := range []*key.Binding{
		&keys.Paste, &keys.SelectCharacterForward, &keys.SelectCharacterBackward, &keys.SelectWordForward, &keys.SelectWordBackward,
		&keys.SelectLineUp, &keys.SelectLineDown, &keys.SelectAll, &keys.CopySelection,
	} {
		b.SetEnabled(false)
	}
	area.KeyMap = keys
	area.Focus()
	return &editor{area: area, pastes: map[string]string{}, history: history, at: len(history)}
}

// text returns the text in the box, with placeholders.
func (e *editor) text() string { return e.area.Value() }

func (e *editor) empty() bool { return e.area.Value() == "" }

// value returns the text with pastes in place of placeholders.
func (e *editor) value() string {
	text := e.area.Value()
	for name, paste := range e.pastes {
		text = strings.ReplaceAll(text, name, paste)
	}
	return text
}

// set replaces the text and moves the cursor to its end.
func (e *editor) set(text string) {
	e.area.SetValue(text)
	e.area.MoveToEnd()
}

func (e *editor) clear() {
	e.keep()
	e.area.Reset()
	e.at, e.draft, e.search = len(e.history), "", nil
	if e.vim != nil {
		e.vim.normal, e.vim.pending = false, ""
	}
}

// remember adds the text to the history and clears the box. It returns the entry
// to save: with placeholders if it is large.
func (e *editor) remember() string {
	entry := e.value()
	if len(entry) > 4<<10 {
		entry = e.text()
	}
	if n := len(e.history); strings.TrimSpace(entry) != "" && (n == 0 || e.history[n-1] != entry) {
		e.history = append(e.history, entry)
	}
	e.clear()
	return entry
}

// paste inserts a text: a large one as a placeholder.
func (e *editor) paste(text string) {
	e.keep()
	text = untab(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if lines <= 5 && len(text) <= 1000 {
		e.area.InsertString(display.Printable(text))
		return
	}
	e.pasted++
	size := display.Plural(lines, "line")
	if lines == 1 {
		size = display.Plural(len([]rune(text)), "character")
	}
	name := "[pasted " + size + "]"
	if _, taken := e.pastes[name]; taken {
		name = fmt.Sprintf("[pasted %s, #%d]", size, e.pasted)
	}
	e.pastes[name] = text
	e.area.InsertString(name)
}

// key handles an editing key.
func (e *editor) key(msg tea.KeyPressMsg) {
	if e.search != nil && e.searchKey(msg) {
		return
	}
	if e.vim != nil && e.vimKey(msg) {
		return
	}
	first := e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0
	last := e.area.Line() == e.area.LineCount()-1 && e.area.LineInfo().RowOffset >= e.area.LineInfo().Height-1
	switch k := msg.String(); {
	case (k == "up" || k == "ctrl+p") && first:
		e.recall(-1)
		return
	case (k == "down" || k == "ctrl+n") && last:
		e.recall(1)
		return
	case k == "ctrl+_", k == "ctrl+/", k == "ctrl+-":
		e.undo()
		return
	case k == "ctrl+y":
		e.keep()
		e.area.InsertString(e.killed)
		return
	case k == "ctrl+r":
		e.search = &search{found: -1, prior: e.text()}
		return
	}
	e.keepBefore(msg)
	if msg.String() == "backspace" && e.dropPaste(msg) {
		return
	}
	was := e.text()
	e.area, _ = e.area.Update(msg)
	switch msg.String() {
	case "ctrl+k", "ctrl+u", "ctrl+w", "alt+d", "alt+backspace", "ctrl+backspace", "alt+delete", "ctrl+delete":
		e.kill(was)
	}
}

// kill keeps what was just deleted from a text.
func (e *editor) kill(was string) {
	now := e.text()
	from := len(commonPrefix([]string{was, now}))
	if n := len(was) - len(now); n > 0 {
		e.killed = was[from : from+n]
	}
}

// recall shows the previous or the next history entry.
func (e *editor) recall(step int) {
	to := e.at + step
	if to < 0 || to > len(e.history) {
		return
	}
	if e.at == len(e.history) {
		e.draft = e.text()
	}
	e.at = to
	if to == len(e.history) {
		e.set(e.draft)
	} else {
		e.set(e.history[to])
	}
	if step < 0 { // so that the next press continues here
		e.area.MoveToBegin()
		e.area.CursorEnd()
	}
}

// dropPaste deletes a whole placeholder before the cursor.
func (e *editor) dropPaste(backspace tea.KeyPressMsg) bool {
	lines := strings.Split(e.text(), "\n")
	line := []rune(lines[min(e.area.Line(), len(lines)-1)])
	before := string(line[:min(e.area.Column(), len(line))])
	for name := range e.pastes {
		if strings.HasSuffix(before, name) {
			for range []rune(name) {
				e.area, _ = e.area.Update(backspace)
			}
			return true
		}
	}
	return false
}

// searchKey handles a key during a search. It returns false if the key ends the
// search and must be handled normally.
func (e *editor) searchKey(msg tea.KeyPressMsg) bool {
	s := e.search
	switch k := msg.String(); k {
	case "ctrl+r":
		e.find(s.found - 1)
	case "backspace":
		if r := []rune(s.term); len(r) > 0 {
			s.term = string(r[:len(r)-1])
			e.find(len(e.history) - 1)
		}
	case "esc", "ctrl+g":
		e.set(s.prior)
		e.search = nil
	default:
		if msg.Text == "" {
			e.search = nil
			return false
		}
		s.term += msg.Text
		e.find(len(e.history) - 1)
	}
	return true
}

// find shows the newest entry that contains the term, from the given one back.
func (e *editor) find(from int) {
	s := e.search
	for i := min(from, len(e.history)-1); i >= 0 && s.term != ""; i-- {
		if strings.Contains(e.history[i], s.term) {
			s.found = i
			e.set(e.history[i])
			return
		}
	}
	if s.found < 0 || s.term == "" {
		e.set(s.prior)
	}
}

// before returns the text of the line before the cursor.
func (e *editor) before() string {
	lines := strings.Split(e.text(), "\n")
	line := []rune(lines[min(e.area.Line(), len(lines)-1)])
	return string(line[:min(e.area.Column(), len(line))])
}

// argument returns the command and the argument before the cursor, if it is in one.
func (e *editor) argument() (command, word string, ok bool) {
	before := e.before()
	if e.area.Line() != 0 || !strings.HasPrefix(before, "/") {
		return "", "", false
	}
	command, rest, ok := strings.Cut(before[1:], " ")
	return command, rest[strings.LastIndexAny(rest, " \t")+1:], ok
}

// word returns the word to complete before the cursor: a command, "@" and the
// beginning of a file name, or "".
func (e *editor) word() string {
	before := e.before()
	if e.area.Line() == 0 && strings.HasPrefix(before, "/") && !strings.ContainsAny(before, " \t") {
		return before
	}
	if i := strings.LastIndex(before, `@"`); i >= 0 && !strings.Contains(before[i+2:], `"`) && (i == 0 || before[i-1] == ' ') {
		return before[i:]
	}
	if i := strings.LastIndexAny(before, " \t"); strings.HasPrefix(before[i+1:], "@") {
		return before[i+1:]
	}
	return ""
}

// complete replaces the word before the cursor.
func (e *editor) complete(word, by string) {
	for range []rune(word) {
		e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	e.area.InsertString(by)
}

// continues replaces a backslash before the cursor by a line break.
func (e *editor) continues() bool {
	lines := strings.Split(e.text(), "\n")
	line := []rune(lines[min(e.area.Line(), len(lines)-1)])
	col := min(e.area.Column(), len(line))
	if col == 0 || line[col-1] != '\\' {
		return false
	}
	e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	e.area.InsertString("\n")
	return true
}

// view returns the rows of the box and the cursor's position in them.
func (e *editor) view(width, height int) (rows []string, x, y int) {
	e.area.MaxHeight = max(1, min(8, height))
	e.area.SetWidth(max(8, width))
	rows = strings.Split(e.area.View(), "\n")
	for i, r := range rows {
		rows[i] = strings.TrimRight(r, " ")
	}
	if c := e.area.Cursor(); c != nil {
		x, y = c.X, c.Y
	}
	return slices.Clip(rows), min(x, max(0, width-1)), y
}
