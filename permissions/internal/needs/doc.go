// Package needs tells what a command will need of what lies outside its sandbox:
// hosts, sockets, directories, or no sandbox at all. It knows common programs and
// reads the settings that name other registries and remotes than the usual ones.
//
// It is a forecast to ask with, not a limit: a command that needs more is refused
// that when it runs, and one that needs less has been asked about in vain. So it
// errs towards the usual, and knows nothing about unknown programs.
//
// needs.go has the types and what all tables share; each other file has the
// programs of one trade.
package needs
