// Package tui is the interactive session of `agent` on a terminal. Finished
// output goes to the terminal's own scrollback; only a region at the bottom (the
// unfinished part of an answer, running tools, questions, the status and the
// input box) is redrawn. A terminal without cursor movement gets the same
// session line by line.
//
// The package uses a session only through its events and methods. Commands,
// files, shells and settings are passed in [Options].
//
// Bubble Tea decodes keys, manages the terminal's modes and runs the event loop.
// The region is drawn by screen.go: immediately after a key, and in one write
// with all lines that go above it.
package tui
