package tui

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// key handles a key.
func (l *lineScreen) key(msg tea.KeyPressMsg) tea.Cmd {
	msg, done := l.bound(msg)
	if done {
		return nil
	}
	name := msg.String()
	if name != "ctrl+c" {
		l.quitArmed = false
	}
	armed := l.escArmed
	l.escArmed = false
	list := l.picking()
	switch {
	case l.pager != nil:
		if l.pager.key(msg) {
			l.closePager()
		}
	case list != nil && l.steps != nil && name == "ctrl+c":
		l.interrupt() // Esc leaves the list, this the guide
	case list != nil && name != "ctrl+z" && name != "ctrl+l":
		l.pickKey(list, msg)
	case name == "ctrl+z":
		return l.suspend()
	case name == "ctrl+l":
		l.screen.write(clearScreen)
		l.screen.rows, l.screen.x, l.screen.y = nil, 0, 0
	case name == "ctrl+t":
		l.readHistory()
	case name == "ctrl+o":
		if m := l.scene.more; m != nil {
			l.openPager(&pager{title: m.title, render: func(width int) []string { return m.lines(l.scene, width) }})
		}
	case l.dialog != nil && !l.drafting():
		return l.dialogKey(msg)
	case l.steps != nil && name != "ctrl+c":
		// there is no session to type for
	case l.suggestKey(msg):
	case name == "shift+tab" && (len(l.list) < 2 || l.suggesting) && l.NextMode != nil:
		if err := l.NextMode(); err != nil {
			l.scene.fail("%v", err)
		}
	case name == "ctrl+g" && l.editor.search == nil && l.dialog == nil:
		return l.compose()
	case name == "ctrl+v" && l.dialog == nil:
		l.pasteImage()
	case name == "ctrl+k" && l.editor.empty():
		l.openPalette()
	case name == "tab", name == "shift+tab":
		l.complete(name == "tab")
	case l.editor.search != nil && name != "enter" && name != "ctrl+c":
		l.typeKey(l.editor, msg)
	case name == "esc" && l.list == nil && l.editor.leaveInsert():
	case name == "esc" && l.list == nil && l.rewinds():
		if l.escArmed = !armed; armed {
			l.enter("/rewind")
		}
	default:
		l.editKey(msg)
	}
	return nil
}

// suspend stops the program until the shell continues it.
func (l *lineScreen) suspend() tea.Cmd {
	if !canSuspend() {
		l.scene.note(dim, "Cannot suspend: no shell to return to.")
		return nil
	}
	l.screen.erase()
	l.screen.write(leaveRestore)
	l.suspended = true
	return tea.Suspend
}

// rewinds reports whether Esc Esc rewinds: nothing is running or typed.
func (l *lineScreen) rewinds() bool {
	return !l.work.busy && len(l.jobs) == 0 && l.editor.empty() &&
		slices.ContainsFunc(l.commands(), func(c Command) bool { return c.Name == "rewind" })
}

// editKey handles a key for the input box or the session.
func (l *lineScreen) editKey(msg tea.KeyPressMsg) {
	listed := l.list
	if !l.suggesting {
		l.list, l.at = nil, -1
	}
	switch name := msg.String(); {
	case name == "enter":
		l.editor.search = nil
		if !l.editor.continues() {
			l.send()
		}
	case name == "ctrl+c" && !l.work.busy && !l.editor.empty():
		l.editor.clear()
	case name == "ctrl+c":
		l.interrupt()
		l.syncDialog()
	case name == "ctrl+d" && l.editor.empty():
		if l.work.busy {
			l.scene.note(dim, "The agent is working. Press Ctrl-C to stop it.")
			return
		}
		l.change(Next{Kind: NextQuit})
	case name == "esc":
		if listed == nil && l.work.busy && l.work.stopped == 0 {
			l.halt("interrupted by Esc")
		}
	case name == "alt+up":
		l.editQueued()
	default:
		l.typeKey(l.editor, msg)
		if l.editor.commanding() {
			break // nothing is typed that could be completed
		}
		l.suggest()
		return
	}
	l.list, l.at, l.suggesting = nil, -1, false
}

// editQueued takes the last queued message back into the box.
func (l *lineScreen) editQueued() {
	messages := l.scene.queue.shown()
	for i := len(messages) - 1; i >= 0 && l.editor.empty(); i-- {
		if m, ok := l.scene.queue.remove(messages[i].id); ok {
			l.editor.set(m.label)
		}
	}
}

// send submits the text in the box.
func (l *lineScreen) send() {
	text := l.editor.value()
	entry := l.editor.remember()
	l.slips = slips{}
	if strings.TrimSpace(text) != "" && l.SaveHistory != nil {
		l.SaveHistory(entry)
	}
	l.enter(text)
}

// dialogKey handles a key as an answer to the question.
func (l *lineScreen) dialogKey(msg tea.KeyPressMsg) tea.Cmd {
	defer l.syncDialog()
	name := msg.String()
	switch {
	case name == "ctrl+c":
		l.interrupt()
		return nil
	case name == "pgup":
		l.reviewTop -= 10
		return nil
	case name == "pgdown":
		l.reviewTop += 10
		return nil
	case l.dialog.typing():
		l.typedKey(msg)
		return nil
	case l.strayKey(msg):
		return nil
	case name == "esc":
		a := l.dialog.dismissal()
		l.answer(&a)
		return nil
	case name == "up", name == "shift+tab":
		l.selected = max(0, l.selected-1)
	case name == "down", name == "tab":
		l.selected = min(len(l.dialog.options)-1, l.selected+1)
	case name == "enter":
		return l.pick(l.dialog.options[l.selected])
	}
	for _, o := range l.dialog.options {
		if msg.Text == string(o.key) {
			return l.pick(o)
		}
	}
	return nil
}

// pick selects an option of the question.
func (l *lineScreen) pick(o option) tea.Cmd {
	switch o.choice {
	case viewReview:
		l.viewReview()
	case editReview:
		return l.editReview()
	case hunkReview:
		l.openHunks()
	default:
		a := l.dialog.pick(o)
		if a != nil {
			l.slips.answered, l.slips.letter = l.scene.now(), string(o.key)
		}
		l.answer(a)
	}
	return nil
}

// typedKey handles a key for a typed answer.
func (l *lineScreen) typedKey(msg tea.KeyPressMsg) {
	l.syncDialog()
	switch name := msg.String(); {
	case name == "esc" && l.dialog.explaining:
		l.dialog.explaining, l.typed = false, nil
	case name == "esc":
		a := l.dialog.dismissal()
		l.answer(&a)
	case name == "enter" && l.strayEnter():
	case name == "enter":
		a, err := l.dialog.enter(l.typed.value())
		if err != nil {
			l.inputError = err.Error()
			return
		}
		l.inputError, l.typed, l.slips = "", nil, slips{}
		l.answer(a)
	default:
		l.inputError = ""
		l.typeKey(l.typed, msg)
	}
}

// complete completes the word before the cursor; repeated, it cycles through the
// completions.
func (l *lineScreen) complete(forward bool) {
	if len(l.list) > 1 && !l.suggesting {
		step := 1
		if !forward {
			step = len(l.list) - 1
		}
		shown := l.word
		if l.at >= 0 {
			shown = l.list[l.at]
		} else if !forward {
			l.at = 0
		}
		l.at = (l.at + step) % len(l.list)
		l.editor.complete(shown, l.list[l.at])
		return
	}
	l.list, l.at, l.suggesting = nil, -1, false
	word := l.editor.word()
	if list := l.completer(); list != nil {
		_, arg, _ := l.editor.argument()
		l.wg.Go(func() { l.post(completeMsg{arg, list(l.ctx, arg)}) })
		return
	}
	switch {
	case strings.HasPrefix(word, "/"):
		l.completed(completeMsg{word, commandsFor(l.commands(), word)})
	case strings.HasPrefix(word, "@") && l.Complete != nil:
		l.wg.Go(func() {
			l.post(suggestMsg{word, filesFor(l.Complete, word)})
		})
	}
}

// completer returns the completion of the argument before the cursor, or nil.
func (l *lineScreen) completer() func(ctx context.Context, prefix string) []string {
	name, arg, ok := l.editor.argument()
	if !ok || strings.HasPrefix(arg, "@") {
		return nil
	}
	for _, c := range l.commands() {
		if c.Name == name {
			return c.Complete
		}
	}
	return nil
}

// completes reports whether a word is still the one to complete.
func (l *lineScreen) completes(word string) bool {
	if _, arg, ok := l.editor.argument(); ok && l.completer() != nil {
		return arg == word
	}
	return l.editor.word() == word
}

// commandsFor lists the commands with a prefix, or else those that match fuzzily.
func commandsFor(commands []Command, word string) []string {
	var out, all []string
	seen := map[string]bool{}
	for _, c := range commands {
		name := "/" + c.Name
		if !seen[name] && strings.HasPrefix(name, word) {
			out = append(out, name)
		}
		if !seen[name] {
			all = append(all, name)
		}
		seen[name] = true
	}
	if len(out) == 0 {
		return Rank(word, all)
	}
	return out
}

// completed inserts the common prefix of the completions, and lists them if
// there are several.
func (l *lineScreen) completed(m completeMsg) {
	if !l.completes(m.word) || len(m.list) == 0 {
		return
	}
	l.word, l.list, l.at = m.word, m.list, -1
	if len(m.list) == 1 {
		by := m.list[0]
		if !strings.HasSuffix(by, "/") {
			by += " "
		}
		l.list = nil
		l.editor.complete(m.word, by)
		return
	}
	if common := commonPrefix(m.list); len(common) > len(m.word) {
		l.editor.complete(m.word, common)
		l.word = common
	}
}

func commonPrefix(list []string) string {
	common := list[0]
	for _, s := range list[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}
