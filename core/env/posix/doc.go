// Package posix is an environment in any POSIX userland that programs can be
// run in: a container, a pod, a remote host. All that it needs to get there is
// a [Runner]; core/env/docker, core/env/k8s and core/env/ssh each bring one.
//
// Files are read and written by shell scripts that take paths as arguments and
// content as a stream, so that any name and any byte goes through. The
// userland must have a POSIX sh with the usual programs (cat, chmod, dd, env,
// grep, head, mkdir, mv, readlink, rm, stat -c, as coreutils and busybox have
// them) and, for files, Linux's /proc.
//
// A command is watched by a shell of its own beside it, the witness, which
// tells how the command ended and ends what it left behind. When a command's
// context is done, another script ends it and everything that it started:
// what is in its session, what descends from it, and what carries its marker
// in the environment. A process that does away with all three is not found.
// Where there is no setsid program, the command shares the witness's session,
// which the runner must make a new one.
//
// As a shell tells a signal by a status over 128, a command that exits with
// such a status itself is taken for one that a signal ended.
package posix
