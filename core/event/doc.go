// Package event holds the events of a session: their types, their one JSON
// form, and the [Log] over which any number of readers follow them.
//
// The same vocabulary serves a host that draws a session, the session's file
// on disk (which is the stream without its deltas), and
// `agent exec --output-format stream-json`. docs/events.md documents it.
package event
