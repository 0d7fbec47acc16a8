// Package early turns a re-executed program into the helper that confines a
// command, before any other package of the program has initialised.
//
// A sandbox is put together in the child process, between fork and exec, where
// Go code cannot run. So core/proc starts its own binary once more, with [Env]
// set and one end of a socket pair as file descriptor 3, and this package's
// init takes over there: it reads a [Plan], a list of system calls that
// core/proc/sandbox has worked out, makes them, and starts the command. A large
// program spends ten milliseconds and more on initialising its packages; this
// one imports only syscall, runtime and unsafe, so that it comes before nearly
// all of them.
//
// In any other process the init looks for one environment variable and does
// nothing. That variable is not enough to make it act: the socket must already
// hold the same random token.
//
// The conversation, from the helper's side:
//
//	reads  the token, the plan's length and the plan
//	sends  'L' with a listening socket, for each step that says Send
//	sends  'S' when the command runs (of a plan with Init)
//	sends  'F', step, errno if a step failed, and exits
//	sends  'X', wait status, others when the command has ended: others is 1 if
//	       processes that it started still run; they do until the socket is closed
//
// Without Init the helper becomes the command, and the socket just closes.
package early
