// Package redact removes secrets from what is written to disk: session logs,
// recordings, exports. It finds the secrets that it is given, in all their forms
// in text and in JSON, and what looks like a key of a well-known service.
//
// It does not find other secrets that look like words, nor one that is split in
// two: what must stay secret is best never written.
package redact
