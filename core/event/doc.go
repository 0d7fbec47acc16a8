// Package event defines the events of a session: their types, their JSON form,
// and the [Log] through which any number of readers receive them.
//
// The same events serve user interfaces, the session log on disk (the stream
// without its deltas), and `agent exec --output-format stream-json`.
// docs/events.md documents them.
package event
