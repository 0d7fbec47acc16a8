// Package conversation keeps what a model is sent of a session: the messages, what
// they cost, and where each input began, so that it can be taken back. It is pure:
// core decides what is added, and rebuilds it from the session log with the same
// functions.
package conversation
