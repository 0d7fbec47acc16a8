package tui

import "os"

// watcher restores the terminal after the session was killed. There is none on
// Windows.
type watcher struct{}

func watchTerminal(_, _ *os.File, _ string) *watcher { return nil }

func (*watcher) raw()        {}
func (*watcher) tell(string) {}
func (*watcher) close()      {}

// capable reports whether a terminal of this type can move its cursor, as a
// console can.
func capable(term string) bool { return term != "dumb" }

// canSuspend returns false, since there is no job control.
func canSuspend() bool { return false }
