// Package proc starts child processes and makes sure that they end.
//
// A [Supervisor] starts commands, each in its own session, so that none can open
// /dev/tty and impersonate the agent. It guarantees that commands end:
//
//   - When the context is done, the command and everything it started gets
//     SIGTERM, and SIGKILL two seconds later. Wait returns at most 200 ms after
//     that, even if the output is still held open.
//   - When its first process ends, the remaining processes in its process group
//     or session are ended too, and so is any process that holds the output open
//     for more than 150 ms. Only processes that detached themselves from both
//     the session and the output survive, until the supervisor is closed.
//   - When this process is killed, even by SIGKILL, no command survives. The
//     kernel kills the first process of each command (Pdeathsig, Linux), and
//     the guard, a small shell that waits for the end of a pipe, kills the rest.
//
// A process belongs to a command by its group and session, by its ancestors, or
// by a random marker in its environment (AGENT_PROC_ID). A process that leaves
// the session, loses its parents and clears its environment is found only by a
// supervisor that adopts orphans (see [Supervisor.Subreaper]) and, after a SIGKILL of
// this process, by a number in its limit of file locks (Linux), which it inherits and
// the kernel does not use.
//
// A command can be confined to a sandbox, see [Spec] and package sandbox. On
// Linux this program is then started again as the server that forks the commands'
// helpers, and takes over before packages are initialized (package early). On level
// Namespace nothing that the command started outlives it.
//
// Platforms: Linux supports all of the above. macOS has no Pdeathsig and no
// subreaper, and its guard knows only process groups. On other Unix systems only
// the process group is known, as reading their process table is not implemented.
// On Windows a job object contains the command and everything it starts; there
// is no SIGTERM, so processes are killed at once.
package proc
