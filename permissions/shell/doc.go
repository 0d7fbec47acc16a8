// Package shell tells what a bash or POSIX sh script would do, without running
// it: which programs it would start, with which arguments, and which files
// those would read, list, write or delete.
//
// # What is promised
//
// [Analyze] errs to one side. Every simple command that a shell could run is
// among the [Analysis.Commands], wherever it stands: in lists, pipes,
// substitutions, loops, functions, here-documents, or behind a program that
// runs another one (env, xargs, timeout, bash -c …). What it cannot tell is an
// [Analysis.Unclear] finding, and then nothing else is promised: the script
// needs a person.
//
// A command is [ReadOnly] only if its program is in the tables of this package,
// each of its options is too, and all that it opens is among its Accesses. An
// unknown program, option or word is never taken for harmless. Whether the
// accesses may happen is for the caller to judge: this package looks at no file
// and knows of no workspace.
//
// Where something is unclear, the commands may be incomplete: rules that forbid
// should then look at the text of the script too.
//
// # What is taken for granted
//
// The shell is not interactive, starts in Options.Dir with default options and
// an environment that the script's author has no hand in, extended by
// [Analysis.Env]; sh is bash, dash or busybox; bare program names lead to the
// system's programs by PATH; and nothing changes between the analysis and the
// run, not even by the script itself: whether a path that it writes to and then
// reads leads out of a directory by a link, say, is not followed. Git also reads
// the repository's own settings: see [Analysis.Repositories].
//
// # How to read the code
//
// screen.go holds what is looked at before the parser, walk.go the way through
// the script, word.go and variables.go what is known of values, builtins.go and
// wrappers.go the commands that run others. tables.go, judges.go, find.go,
// sed.go, filters.go and git.go say what programs do with which options, in the
// notation of options.go. repository.go checks the settings of git.
//
// The tests run generated scripts with bash, dash and busybox, where every
// program is a shim, and compare what was started with the analysis.
package shell
