package tui

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// composedMsg reports that the editor of the message has ended.
type composedMsg struct {
	dir  *sandbox.TempDir
	file string
	err  error
}

// compose opens the text of the box, with what was pasted, in the user's editor.
func (l *lineScreen) compose() tea.Cmd {
	dir, err := sandbox.NewTempDir()
	if err != nil {
		l.scene.fail("%v", err)
		return nil
	}
	msg := composedMsg{dir: dir, file: filepath.Join(dir.Path, "message.md")}
	if err := os.WriteFile(msg.file, []byte(l.editor.value()), 0o600); err != nil {
		l.scene.fail("%v", err)
		_ = dir.Remove()
		return nil
	}
	l.list, l.at, l.suggesting = nil, -1, false
	return l.external(append(editorCommand(l.Env), msg.file), func(err error) tea.Msg {
		msg.err = err
		return msg
	})
}

// composed takes the text from the user's editor.
func (l *lineScreen) composed(m composedMsg) {
	l.suspended = false
	l.screen.write(pasteOn)
	defer m.dir.Remove()
	text, err := os.ReadFile(m.file)
	if m.err != nil {
		err = m.err
	}
	if err != nil {
		l.scene.fail("the editor failed, so the message is as it was: %v", err)
		return
	}
	l.editor.keep()
	l.editor.set(display.Printable(untab(strings.TrimRight(string(text), "\n"))))
}

// copyText puts a text into the terminal's clipboard.
func (l *lineScreen) copyText(text string) {
	l.screen.write("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a")
}

// maxUndo limits the texts that the box can go back to.
const maxUndo = 100

// keep remembers the text of the box, for undo.
func (e *editor) keep() {
	if n := len(e.undone); n > 0 && e.undone[n-1] == e.text() {
		return
	}
	e.undone = append(e.undone, e.text())
	e.undone = e.undone[max(0, len(e.undone)-maxUndo):]
}

// keepBefore remembers the text before a key that may change it. Letters of one word
// are undone together.
func (e *editor) keepBefore(msg tea.KeyPressMsg) {
	letter := msg.Text != "" && msg.Text != " "
	if !letter || !e.inWord {
		e.keep()
	}
	e.inWord = letter
}

// undo takes the last change back.
func (e *editor) undo() {
	e.inWord = false
	for n := len(e.undone); n > 0; n-- {
		text := e.undone[n-1]
		e.undone = e.undone[:n-1]
		if text != e.text() {
			e.set(text)
			return
		}
	}
}
