// Package shell analyzes what a bash or POSIX sh script would do, without running
// it: which programs it would start, with which arguments, and which files these
// would read, list, write or delete.
//
// # Guarantees
//
// [Analyze] errs on the safe side. Every simple command that a shell could run is
// among the [Analysis.Commands], wherever it occurs: in lists, pipes,
// substitutions, loops, functions, here-documents, or as an argument of a program
// that runs another one (env, xargs, timeout, bash -c …). What it cannot analyze
// is an [Analysis.Unclear] finding; then nothing is guaranteed, and the user must
// decide.
//
// A command is [ReadOnly] only if its program and all of its options are in the
// tables of this package, and all that it opens is among its Accesses. An unknown
// program, option or word is never taken to be harmless. Whether the accesses are
// allowed is for the caller to decide: this package reads no file and knows of no
// workspace.
//
// If something is unclear, the commands may be incomplete: deny rules should then
// also search the text of the script.
//
// # Assumptions
//
// The shell is not interactive, starts in Options.Dir with default options and an
// environment that the script's author does not control, extended by
// [Analysis.Env]; sh is bash, dash or busybox; PATH resolves bare program names
// to the system's programs; and nothing changes between the analysis and the run,
// not even by the script itself: if it creates a link out of a directory and then
// reads through it, that is not tracked. Git also reads the repository's own
// settings: see [Analysis.Repositories].
//
// # Code structure
//
// screen.go checks a script before parsing, walk.go walks through it, word.go and
// variables.go track values, builtins.go and wrappers.go handle commands that run
// others. tables.go, judges.go, find.go, sed.go, filters.go and git.go know what
// programs do with which options, in the notation of options.go. repository.go
// checks the settings of git.
//
// The tests run generated scripts with bash, dash and busybox, where every
// program is a shim, and compare what was started with the analysis.
package shell
