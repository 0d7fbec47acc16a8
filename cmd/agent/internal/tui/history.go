package tui

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// historyMsg is the conversation so far, for the pager.
type historyMsg []event.Event

// readHistory reads the events up to the last one that was shown.
func (l *lineScreen) readHistory() {
	last := l.shown
	l.wg.Go(func() {
		var all historyMsg
		for e, err := range l.Session.Events(l.ctx, 0) {
			if err != nil || e.Seq > last {
				break
			}
			switch e.Body.(type) {
			case event.MessageDelta, event.ReasoningDelta, event.ToolOutputDelta, event.ToolProgress: // others have it in full
			default:
				all = append(all, e)
			}
			if e.Seq == last {
				break
			}
		}
		l.post(all)
	})
}

// mark is where an event begins in the transcript.
type mark struct {
	line int
	kind markKind
	text string // as the event has it
}

type markKind byte

// The kinds of marks, by the key that goes to the next one.
const (
	nextInput    markKind = 'u'
	nextChange   markKind = 'c'
	nextError    markKind = 'e'
	nextQuestion markKind = '?'
)

// transcript shows the whole conversation.
type transcript struct {
	*lineScreen
	*pager
	events []event.Event
	folded bool // without the details
	marks  []mark
}

// openHistory shows the whole conversation.
func (l *lineScreen) openHistory(events []event.Event) {
	t := &transcript{lineScreen: l, events: events}
	t.pager = &pager{title: "The conversation so far", hint: "u c e ? jump · f fold · y copy · x export"}
	t.pager.render, t.pager.other, t.cursor = t.rows, t.handle, -1
	l.openPager(t.pager)
	t.layout(l.screen.width, l.screen.height)
	t.scroll(len(t.lines)) // the end
}

func (t *transcript) rows(width int) []string {
	s := newScene(t.lineScreen.scene.hurried(200*time.Millisecond), width, t.lineScreen.scene.dir)
	s.verbose, s.full, s.brief = !t.folded, !t.folded, t.folded
	var lines []string
	t.marks = t.marks[:0]
	keep := func(m mark) {
		out := s.take()
		for m.line = len(lines); len(out) > 0 && m.line-len(lines) < len(out)-1 && out[m.line-len(lines)] == ""; m.line++ {
		}
		if lines = append(lines, out...); len(out) > 0 {
			t.marks = append(t.marks, m)
		}
	}
	for _, e := range t.events {
		if b, ok := e.Body.(event.User); ok {
			text := Entered(b.Content)
			s.user(text)
			keep(mark{kind: nextInput, text: text})
			continue
		}
		s.apply(e)
		keep(markOf(e.Body))
	}
	s.settle()
	keep(mark{})
	return lines
}

// markOf returns the mark of an event.
func markOf(body event.Body) mark {
	switch b := body.(type) {
	case event.Message:
		return mark{text: b.Content.Text()}
	case event.Steering:
		return mark{kind: nextInput, text: b.Content.Text()}
	case event.Answer:
		return mark{kind: nextQuestion, text: strings.TrimSpace(b.Choice + " " + b.Reason)}
	case event.Error:
		return mark{kind: nextError, text: b.Message}
	case event.ToolResult:
		m := mark{text: b.Content.Text()}
		switch diff := diffOf(b); {
		case b.Name == event.AskTool:
			m.kind = nextQuestion
		case b.IsError || display.CommandFailed(b):
			m.kind = nextError
		case diff != "":
			m.kind, m.text = nextChange, diff
		}
		return m
	}
	return mark{}
}

// handle handles the keys of the transcript.
func (t *transcript) handle(key string) bool {
	switch key {
	case "u", "c", "e", "?":
		t.jump(markKind(key[0]), 1)
	case "U", "C", "E":
		t.jump(markKind(key[0]|0x20), -1)
	case "f":
		at := t.current()
		t.folded, t.lines = !t.folded, nil
		t.layout(t.pager.width, t.pager.height+2)
		if at >= 0 && at < len(t.marks) {
			t.top, t.cursor = t.marks[at].line, t.marks[at].line
			t.scroll(0)
		}
	case "y":
		if at := t.current(); at >= 0 {
			t.screen.write(copySequence(t.marks[at].text))
			t.note = "copied: " + display.OneLine(t.marks[at].text, 60)
		}
	case "x":
		t.ask("Export as text to: ", t.export)
	default:
		return false
	}
	return true
}

// current returns the index of the mark that was gone to, or else of the one at the
// top of the screen, or -1.
func (t *transcript) current() int {
	line, at := t.here(), -1
	for i, m := range t.marks {
		if m.line <= line || at < 0 {
			at = i
		}
	}
	return at
}

// jump goes to the next mark of a kind, or to the one before.
func (t *transcript) jump(kind markKind, step int) {
	at, wrapped := around(t.current()+step, step, len(t.marks), func(i int) bool { return t.marks[i].kind == kind })
	if at < 0 {
		t.note = "there is none in this conversation"
		return
	}
	t.top, t.cursor = t.marks[at].line, t.marks[at].line
	t.note = wrapNote(step, wrapped)
	t.scroll(0)
}

// copySequence makes the terminal put a text into its clipboard.
func copySequence(text string) string {
	return "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
}

// export writes the conversation to a new file.
func (t *transcript) export(name string) {
	name = strings.TrimSpace(name)
	if name == "" {
		return
	}
	if rest, inHome := strings.CutPrefix(name, "~/"); inHome {
		name = filepath.Join(t.Env("HOME"), rest)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.Dir, name)
	}
	s := newScene(painter{}, 0, t.Dir)
	s.verbose, s.full = true, true
	for _, e := range t.events {
		if b, ok := e.Body.(event.User); ok {
			s.user(Entered(b.Content))
			continue
		}
		s.apply(e)
	}
	s.settle()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(strings.Join(s.take(), "\n") + "\n")
		err = errors.Join(err, f.Close())
	}
	switch t.note = "exported to " + name; {
	case errors.Is(err, fs.ErrExist):
		t.note = "not exported: there is such a file already; enter another name"
	case err != nil:
		t.note = "not exported: " + err.Error()
	}
}
