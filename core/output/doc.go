// Package output limits the output of a tool call: what the model gets of it
// ([Truncate]), and what is kept in memory while it is written ([Spool]).
//
// Truncation counts characters first and lines second, so that a text of few
// very long lines is cut too, and never cuts inside a rune.
package output
