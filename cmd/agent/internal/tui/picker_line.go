package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-009c0928/agent/core"
)

// Choose asks the user for one of the items of a list. It returns -1 if none is
// chosen. Line by line, the user enters a number or a part of the label.
func (a *Asker) Choose(ctx context.Context, l List) (int, error) {
	p := &pending{Question: core.Question{Kind: core.QuestionConfirm, Title: l.Title}, reply: make(chan core.Answer, 1), list: &l, chosen: -1}
	if _, err := a.wait(ctx, p); err != nil {
		return -1, err
	}
	return p.chosen, nil
}

// Listing reports whether a user is at a terminal, to choose from a list.
func (a *Asker) Listing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.listing
}

// Copying reports whether the terminal has a clipboard.
func (a *Asker) Copying() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.copying
}

// list says that a user can choose from lists, and whether the terminal takes
// sequences.
func (a *Asker) list(sequences bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listing, a.copying = true, sequences
}

// previewMsg is a preview of an item.
type previewMsg struct {
	of   *picker
	at   int
	text string
}

// picking returns the list that has the focus, or nil.
func (l *lineScreen) picking() *picker {
	switch {
	case l.dialog == nil || l.drafting():
		return l.palette
	case l.dialog.list == nil:
		return nil
	}
	if l.picker == nil || l.pickerOf != l.dialog.pending {
		l.picker, l.pickerOf = newPicker(*l.dialog.list), l.dialog.pending
	}
	return l.picker
}

// pickKey handles a key for a list.
func (l *lineScreen) pickKey(p *picker, msg tea.KeyPressMsg) {
	chosen, done := p.key(msg)
	if !done {
		return
	}
	if p == l.palette {
		l.palette = nil
		if chosen >= 0 {
			l.useCommand(p.Items[chosen].Label)
		}
		return
	}
	l.dialog.chosen = chosen
	l.picker, l.pickerOf = nil, nil
	l.answer(&core.Answer{Choice: core.ChoiceYes})
}

// pickRows returns the rows of a list, and asks for what is to be shown of the
// selected item.
func (l *lineScreen) pickRows(p *picker, width, height int) (rows []string, x, y int) {
	if at := p.chosen(); p.Preview != nil && at >= 0 && !p.asked[at] {
		p.asked[at] = true
		l.wg.Go(func() { l.post(previewMsg{p, at, p.Preview(l.ctx, at)}) })
	}
	return p.rows(l.scene, width, min(height, max(14, height*2/3))) // what is above stays in view
}

// openPalette shows all commands.
func (l *lineScreen) openPalette() {
	var list List
	list.Title = "Commands"
	seen := map[string]bool{}
	for _, c := range l.commands() {
		if !seen[c.Name] {
			detail := c.Summary
			if c.Args != "" {
				detail = c.Args + "  " + detail
			}
			list.Items = append(list.Items, Item{"/" + c.Name, detail})
		}
		seen[c.Name] = true
	}
	l.palette = newPicker(list)
}

// useCommand runs a command, or puts it into the box if it needs an argument.
func (l *lineScreen) useCommand(name string) {
	for _, c := range l.commands() {
		if "/"+c.Name != name {
			continue
		}
		if l.editor.empty() && (c.Args == "" || c.Args[0] == '[') {
			l.enter(name)
			return
		}
		if l.editor.empty() {
			l.editor.set(name + " ")
		}
		return
	}
}
