// Package output keeps the output of a tool call within bounds: what the model
// gets of it ([Truncate]), and how a call's text is taken in as it comes
// without holding all of it in memory ([Spool]).
//
// Truncation counts characters first and lines second, so that a text of few
// endless lines is cut too, and never cuts inside a rune.
package output
