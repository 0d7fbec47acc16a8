// Package posix is an environment in any POSIX userland that can run programs: a
// container, a pod, a remote host. It reaches the userland through a [Runner];
// core/env/docker, core/env/k8s and core/env/ssh provide runners.
//
// Files are read and written by shell scripts that take paths as arguments and
// content as a stream, so that names and content may have any bytes. The
// userland must have a POSIX sh with the usual programs (cat, chmod, dd, env,
// grep, head, mkdir, mv, readlink, rm, stat -c, as in coreutils and busybox)
// and, for files, Linux's /proc.
//
// Each command is watched by a separate shell, the witness, which reports how
// the command ended and ends the processes it left running. When a command's
// context is done, another script ends it and everything it started: the
// processes in its session, its descendants, and those with its marker in their
// environment. A process that escapes all three is not found. Without a setsid
// program the command shares the witness's session, which the runner must have
// created.
//
// Shells report a signal as a status over 128, so a command that exits with such
// a status appears to have been ended by a signal.
package posix
