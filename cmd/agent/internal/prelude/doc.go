// Package prelude is what the program does before the inits of most packages, which
// take longer than all the rest of a short command.
//
// It answers `agent version` and ends the program. And it puts the first garbage
// collection off: the runtime starts one at about 3 MB of heap, which is what the inits
// of all packages allocate, and most of it stays.
//
// The package imports only the standard library and what does the same, and of the
// packages that need nothing else the one whose path sorts first is initialised first.
package prelude
