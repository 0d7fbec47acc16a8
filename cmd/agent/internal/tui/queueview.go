package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// waiting returns the messages that the session does not have, as shown to the user.
func (q *Queue) waiting() []queued {
	return slices.DeleteFunc(q.shown(), func(m queued) bool { return m.sent })
}

// move moves a message of waiting before or behind its neighbour.
func (q *Queue) move(id, by int) {
	list := q.waiting()
	at := slices.IndexFunc(list, func(m queued) bool { return m.id == id })
	if at < 0 || at+by < 0 || at+by >= len(list) {
		return
	}
	other := list[at+by].id
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.items, func(m queued) bool { return m.id == id && !m.sent })
	j := slices.IndexFunc(q.items, func(m queued) bool { return m.id == other && !m.sent })
	if i >= 0 && j >= 0 {
		q.items[i], q.items[j] = q.items[j], q.items[i]
	}
}

// cmdQueue shows the queue, or changes it.
func (h *host) cmdQueue(_ context.Context, args string) (Result, error) {
	words := strings.Fields(args)
	if len(words) == 0 {
		return Result{view: viewQueue}, nil
	}
	list := h.Queue.waiting()
	n := 0
	if len(words) == 2 {
		n, _ = strconv.Atoi(words[1])
	}
	switch {
	case !slices.Contains([]string{"edit", "drop", "up", "down"}, words[0]) || len(words) != 2:
		return Result{}, errors.New("use /queue, /queue edit N, /queue drop N, /queue up N or /queue down N")
	case n < 1 || n > len(list):
		return Result{}, fmt.Errorf("no message %q is queued; /queue lists them", words[1])
	}
	item := list[n-1]
	switch words[0] {
	case "up":
		h.Queue.move(item.id, -1)
	case "down":
		h.Queue.move(item.id, 1)
	default:
		if _, ok := h.Queue.remove(item.id); ok && words[0] == "edit" {
			return Result{Draft: item.label}, nil
		}
	}
	return Result{view: viewQueue}, nil
}

// queueText lists the queue, as Markdown.
func (d *driver) queueText() string {
	var b strings.Builder
	for i, m := range d.Queue.waiting() {
		fmt.Fprintf(&b, "%d. %s\n", i+1, display.OneLine(m.label, 200))
	}
	if b.Len() == 0 {
		return "No message is queued."
	}
	return b.String() + "\n`/queue drop N` removes one, `/queue up N` and `/queue down N` move it."
}

// queueView lists the queued messages.
type queueView struct {
	*lineScreen
	*pager
	selected int // ID
}

// openQueue shows the queued messages.
func (l *lineScreen) openQueue() {
	v := &queueView{lineScreen: l}
	v.pager = &pager{title: "Queued messages", live: true, hint: "Enter edit · d drop · K J move"}
	v.pager.render, v.pager.other = v.rows, v.handle
	l.openPager(v.pager)
}

func (v *queueView) at(list []queued) int {
	return max(0, slices.IndexFunc(list, func(m queued) bool { return m.id == v.selected }))
}

func (v *queueView) rows(width int) []string {
	list := v.Queue.waiting()
	if len(list) == 0 {
		return []string{"", "  No message is queued."}
	}
	var rows []string
	for i, m := range list {
		pointer, st := "  ", plain
		if i == v.at(list) {
			pointer, st = v.scene.paint(cyan, "› "), bold
		}
		rows = append(rows, pointer+v.scene.paint(st, fmt.Sprintf("%2d  %s", i+1, display.OneLine(m.label, max(8, width-6)))))
	}
	return rows
}

// handle handles a key of the list.
func (v *queueView) handle(key string) bool {
	list := v.Queue.waiting()
	if len(list) == 0 {
		return false
	}
	at := v.at(list)
	switch key {
	case "up", "k":
		at = max(0, at-1)
	case "down", "j":
		at = min(len(list)-1, at+1)
	case "K", "shift+up":
		v.Queue.move(list[at].id, -1)
	case "J", "shift+down":
		v.Queue.move(list[at].id, 1)
	case "d", "x", "delete":
		v.Queue.remove(list[at].id)
		at = min(at+1, len(list)-1)
	case "enter", "e":
		if !v.editor.empty() {
			v.note = "the input box has a text: send or clear it first"
		} else if m, ok := v.Queue.remove(list[at].id); ok {
			v.editor.set(m.label)
			v.closePager()
		}
	default:
		return false
	}
	v.selected = list[at].id
	return true
}
