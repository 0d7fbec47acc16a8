// Package host stands between sessions and what drives them: lines of JSON, an editor,
// a terminal, a service. A driver sends commands, which do not block, and reads
// events, which say what came of them. Any number of drivers can follow one session.
//
// What a session is made of, such as settings and trust, comes in as an [Opener].
// Package hosttest has the suite that every driver's host passes.
package host
