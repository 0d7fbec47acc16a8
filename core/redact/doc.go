// Package redact takes secrets out of what is written down: session records,
// recordings, exports. It knows the secrets that it is given, in every form in
// which they stand in text and in JSON, and the looks of common keys.
//
// It cannot know a secret that looks like any other word, nor one that is cut
// in two: what must stay secret is best never written.
package redact
