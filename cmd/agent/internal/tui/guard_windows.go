package tui

import "os"

// watcher restores the terminal after a killed session. There is none on
// Windows: a console is not left to a process that was not there before.
type watcher struct{}

func watchTerminal(_, _ *os.File, _ string) *watcher { return nil }

func (*watcher) raw()   {}
func (*watcher) close() {}

// capable reports whether a terminal of this type can move its cursor: a
// console can, and what says that it is dumb cannot.
func capable(term string) bool { return term != "dumb" }

// canSuspend reports that there is no job control.
func canSuspend() bool { return false }
