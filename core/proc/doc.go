// Package proc starts child processes that have an owner.
//
// A [Supervisor] starts commands, each in a session of its own, so that none
// can open /dev/tty and talk to the person in the agent's name. It promises
// that a command ends:
//
//   - When its context is done, the command and everything that it started is
//     asked to end (SIGTERM), killed two seconds later, and Wait returns at
//     most 200 ms after that, even if somebody still holds its output open.
//   - When its first process ends by itself, what stays behind in its process
//     group or session is ended too. A process that holds the output open
//     for more than 150 ms counts as staying behind, wherever it went. Only
//     what detached itself wholly, from the session and from the output, lives
//     on, until the supervisor is closed.
//   - When this process is killed, even by SIGKILL, nothing of it remains. The
//     kernel kills the first process of each command (Pdeathsig, Linux), and
//     the guard, one small shell that waits at the end of a pipe, the rest.
//
// How a process is known to belong to a command: by its group and session, by
// its parents, and by a random marker in its environment (AGENT_PROC_ID). A
// process that leaves the session, loses its parents and clears its environment
// is found only by a supervisor that adopts orphans (see
// [Supervisor.Subreaper]), and survives a SIGKILL of this process.
//
// A command can be confined to a sandbox, see [Spec] and package sandbox. On
// Linux this program is then started once more and becomes the command's
// helper, before its packages initialise (package early). On level Namespace
// nothing that the command started outlives it, however it detached itself.
//
// By platform: Linux does all of the above. macOS has no Pdeathsig and no
// subreaper, and its guard knows process groups only. Other Unix systems have
// no process table here: they see a command's process group. On Windows a job
// object holds the command and whatever it starts; there is nothing like
// SIGTERM, so that everything is killed at once.
package proc
