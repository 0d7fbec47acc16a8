package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// working counts what runs in the background, and the subagents that work.
func (d *driver) working() int { return d.jobCount + d.agentCount }

// countWork counts what runs; it is called when that may have changed.
func (d *driver) countWork() {
	d.jobCount, d.agentCount = 0, 0
	for _, w := range d.Session.Work() {
		switch {
		case !w.Running:
		case isAgent(w):
			d.agentCount++
		default:
			d.jobCount++
		}
	}
}

// workStatus describes what runs, for the status line.
func (d *driver) workStatus() string {
	var parts []string
	if d.jobCount > 0 {
		parts = append(parts, display.Plural(d.jobCount, "job"))
	}
	if d.agentCount > 0 {
		parts = append(parts, display.Plural(d.agentCount, "agent"))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " (/jobs)"
}

func isAgent(w sessions.Work) bool { return w.Kind == "agent" }

// cmdJobs shows what is in the background, or acts on it.
func (h *host) cmdJobs(ctx context.Context, args string) (Result, error) {
	what, rest, _ := strings.Cut(strings.TrimSpace(args), " ")
	id, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	c := sessions.Command{Work: id}
	switch what {
	case "":
		return Result{view: viewJobs}, nil
	case "end":
		c.Type, c.Reason = "end", "ended by the user"
	case "steer":
		in := core.TextInput(text)
		c.Type, c.Own = "input", &in
	default:
		out, err := h.Session.WorkOutput(what)
		return Result{Text: "```\n" + strings.TrimRight(display.Printable(out), "\n") + "\n```"}, err
	}
	if id == "" || what == "steer" && strings.TrimSpace(text) == "" {
		return Result{}, errors.New("use /jobs, /jobs ID, /jobs end ID or /jobs steer ID TEXT")
	}
	_, err := h.Session.Do(ctx, c)
	return Result{}, err
}

// jobsText lists what is in the background, as Markdown.
func (d *driver) jobsText() string {
	var b strings.Builder
	for _, w := range d.Session.Work() {
		fmt.Fprintf(&b, "- `%s` %s, %s: %s\n", w.ID, w.Kind, w.State, display.OneLine(w.Title, 100))
	}
	if b.Len() == 0 {
		return "Nothing is in the background: no commands, no subagents."
	}
	return b.String() + "\n`/jobs ID` shows the output of a command, `/jobs end ID` ends it, `/jobs steer ID TEXT` gives an agent a message."
}

// jobsView lists what is in the background: commands and subagents.
type jobsView struct {
	*lineScreen
	*pager
	list     []sessions.Work
	selected string // ID
}

// openJobs shows what is in the background.
func (l *lineScreen) openJobs() {
	v := &jobsView{lineScreen: l}
	v.pager = &pager{title: "In the background", live: true, hint: "Enter follow · s steer · x end"}
	v.pager.render, v.pager.other = v.rows, v.handle
	l.openPager(v.pager)
}

// at returns the index of the selected work.
func (v *jobsView) at() int {
	for i, w := range v.list {
		if w.ID == v.selected {
			return i
		}
	}
	return 0
}

func (v *jobsView) rows(width int) []string {
	if v.list = v.Session.Work(); len(v.list) == 0 {
		return []string{"", "  Nothing is in the background: no commands, no subagents."}
	}
	var rows []string
	for i, w := range v.list {
		pointer, st := "  ", plain
		if i == v.at() {
			pointer, st = v.scene.paint(cyan, "› "), bold
		}
		mark := v.scene.paint(dim, "·")
		if w.Running {
			mark = v.scene.paint(green, "●")
		}
		tail := w.State + " · " + v.elapsed(w.Began)
		if w.Tokens > 0 {
			tail += " · " + display.Count(w.Tokens) + " tokens"
		}
		name := string(w.Kind)
		if !isAgent(w) {
			name = w.ID
		}
		tail = v.scene.paint(dim, display.OneLine(tail, 80))
		head := pointer + mark + " " + v.scene.paint(st, fmt.Sprintf("%-7s ", name))
		room := width - ansi.StringWidth(head) - ansi.StringWidth(tail) - 2
		rows = append(rows, head+display.OneLine(w.Title, max(room, 8))+"  "+tail)
	}
	return rows
}

// handle handles a key of the list.
func (v *jobsView) handle(key string) bool {
	at := v.at()
	switch key {
	case "up", "k":
		at = max(0, at-1)
	case "down", "j":
		at = min(len(v.list)-1, at+1)
	case "enter", "s", "x":
		if len(v.list) > 0 {
			v.act(key, v.list[at])
		}
		return true
	default:
		return false
	}
	if at >= 0 && len(v.list) > 0 {
		v.selected = v.list[at].ID
	}
	return true
}

// act does what a key asks for with a work.
func (v *jobsView) act(key string, w sessions.Work) {
	switch {
	case key == "enter" && isAgent(w):
		v.followAgent(w)
	case key == "enter":
		v.followCommand(w)
	case !w.Running:
		v.note = "it does not run any more"
	case key == "x":
		v.ask("End "+display.OneLine(w.Title, 40)+"? y ends it: ", func(text string) {
			if text == "y" || text == "yes" {
				v.command(sessions.Command{Type: "end", Work: w.ID, Reason: "ended by the user"})
			}
		})
	case !isAgent(w):
		v.note = "a command reads no messages: only agents can be steered"
	default:
		v.ask("To "+display.OneLine(w.Title, 40)+": ", func(text string) {
			if strings.TrimSpace(text) != "" {
				in := core.TextInput(text)
				v.command(sessions.Command{Type: "input", Work: w.ID, Own: &in})
			}
		})
	}
}

func (v *jobsView) command(c sessions.Command) {
	if _, err := v.Session.Do(v.ctx, c); err != nil {
		v.note = err.Error()
	}
}

// followCommand shows the output of a command as it comes.
func (v *jobsView) followCommand(w sessions.Work) {
	v.openPager(&pager{title: w.ID + ": " + display.VisibleLine(w.Title, 500), live: true, over: v.pager, render: func(width int) []string {
		text, err := v.Session.WorkOutput(w.ID)
		switch {
		case err != nil:
			text = err.Error()
		case text == "":
			text = "(no output yet)"
		}
		var out []string
		for line := range strings.SplitSeq(strings.TrimRight(display.Printable(text), "\n"), "\n") {
			out = append(out, v.scene.fold(plain, untab(line), width, "", "  ")...)
		}
		return out
	}})
}

// followed is a subagent's session, as far as it was read.
type followed struct {
	mu     sync.Mutex
	events []event.Event
}

// followAgent shows the session of a subagent while it runs.
func (v *jobsView) followAgent(w sessions.Work) {
	f := &followed{}
	v.wg.Go(func() {
		for e, err := range v.Session.WorkEvents(v.ctx, w.ID, 0) {
			if err != nil {
				return
			}
			f.mu.Lock()
			f.events = append(f.events, e)
			f.mu.Unlock()
		}
	})
	var s *scene
	var lines []string
	shown := 0
	v.openPager(&pager{title: "agent " + display.VisibleLine(w.Title, 200), live: true, over: v.pager, render: func(width int) []string {
		if s == nil || s.width != width {
			s, lines, shown = newScene(v.scene.painter, width, v.scene.dir), nil, 0
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.events[shown:] {
			if b, ok := e.Body.(event.User); ok {
				s.user(Entered(b.Content))
				continue
			}
			s.apply(e)
		}
		shown = len(f.events)
		lines = append(lines, s.take()...)
		if s.answer != nil {
			return append(lines[:len(lines):len(lines)], s.answer.tail(width)...)
		}
		return lines
	}})
}
