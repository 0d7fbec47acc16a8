package tui

import "slices"

// view is a part of the terminal that a command opens.
type view string

const (
	viewJobs  view = "jobs"
	viewQueue view = "queue"
)

// openView opens a view on the alternate screen.
func (l *lineScreen) openView(v view) {
	switch v {
	case viewJobs:
		l.openJobs()
	case viewQueue:
		l.openQueue()
	}
}

// printView prints a view, for screens that do not redraw.
func (p *plainScreen) printView(v view) {
	switch v {
	case viewJobs:
		p.scene.markdown(p.jobsText())
	case viewQueue:
		p.scene.markdown(p.queueText())
	}
}

// Reserved reports whether a command of that name is the terminal's own.
func Reserved(name string) bool {
	return slices.Contains([]string{"help", "jobs", "keys", "queue", "quit"}, name)
}
