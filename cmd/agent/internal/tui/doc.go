// Package tui is the interactive line session: what `agent` shows on a
// terminal. What is finished goes into the terminal's own scrollback; only a
// region at the bottom (the unfinished part of an answer, running tools,
// questions, the status and the input box) is drawn again and again. A
// terminal that cannot do that gets the same session line by line.
//
// The package knows a session by its events and verbs. Commands, files, shells
// and settings come in through [Options].
//
// Bubble Tea decodes the keys, keeps the terminal's modes and runs the event
// loop. The region is drawn by screen.go: at once after a key, and in one write
// with the lines that go above it, however many there are.
package tui
