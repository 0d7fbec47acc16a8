package tui

import (
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

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

// changedLines is the summary of an edit.
var changedLines = regexp.MustCompile(`\+\d+ −\d+ · `)

// openHistory shows the whole conversation.
func (l *lineScreen) openHistory(events []event.Event) {
	p := &pager{title: "The conversation so far", hint: "u input · c change · e error"}
	p.render = func(width int) []string {
		s := newScene(l.scene.hurried(200*time.Millisecond), width, l.scene.dir)
		s.verbose, s.full = true, true
		for _, e := range events {
			if b, ok := e.Body.(event.User); ok {
				s.user(userText(b.Content))
				continue
			}
			s.apply(e)
		}
		s.settle()
		return s.take()
	}
	jump := func(is func(line string) bool) bool {
		for i := p.top + 1; i < len(p.lines); i++ {
			if is(ansi.Strip(p.lines[i])) {
				p.top = i
				p.scroll(0)
				break
			}
		}
		return true
	}
	p.other = func(key string) bool {
		switch key {
		case "u":
			return jump(func(line string) bool { return strings.HasPrefix(line, "> ") })
		case "c":
			return jump(changedLines.MatchString)
		case "e":
			return jump(func(line string) bool { return strings.HasPrefix(line, "✗ ") })
		}
		return false
	}
	l.openPager(p)
	p.layout(l.screen.width, l.screen.height)
	p.scroll(len(p.lines)) // the end
}
