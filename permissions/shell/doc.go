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
// # What is taken for granted
//
// The shell is not interactive, starts in Options.Dir with default options and
// an environment that the script's author has no hand in, extended by
// [Analysis.Env]; bare program names lead to the system's programs by PATH; and
// nothing changes between the analysis and the run. Git also reads the
// repository's own settings: see [Analysis.Repositories].
package shell
