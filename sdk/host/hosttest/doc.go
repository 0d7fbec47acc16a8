// Package hosttest has the suite that every driver of a session passes, whatever it
// speaks: package host itself, lines of JSON, an editor's protocol.
package hosttest
