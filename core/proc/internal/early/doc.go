// Package early turns a re-executed program into the fork server, the small
// process that all confined commands of an agent come from.
//
// A sandbox is put together in the child process, between fork and exec, where
// Go code cannot run as usual. So core/proc starts its own binary once more,
// with [Env] set and one end of a socket pair as file descriptor 3, and this
// package's init takes over there. A large program spends ten milliseconds and
// more on initialising its packages; this one imports only syscall and unsafe,
// so that it comes before nearly all of them, and the process stays small:
// forking it costs a fraction of forking the agent.
//
// In any other process the init looks for one environment variable and does
// nothing. That variable is not enough to make it act: the socket must already
// hold the same random token.
//
// For each command the server gets the flags of clone for its namespaces, a
// [Word], with one end of another socket pair. It forks a helper, as a child of
// the agent, and reports its process ID there. The helper then talks to the
// agent alone, on that socket:
//
//	sends  'C', pid or 0, errno when it is forked or not (by the server)
//	gets   the size of an image, a [Word], with three or four files (a holder, and
//	       for a plan that says Ahead: none), which become its descriptors 0 to 2
//	       and 4, then the image of a [Plan], and the same again after one with Ahead
//	sends  'L' with a socket, for each step that says Send
//	sends  'S' when the command runs (of a plan with Init), or the holder is ready
//	sends  'F', step, errno if a step failed, and exits
//	sends  'X', wait status, others when the command has ended: others is 1 if
//	       processes that it started still run; they do until the socket is closed
//
// A holder is a helper that stays in its namespaces and forks others there, which
// get the same requests as the server: making some namespaces takes about as
// long as all the rest.
//
// Without Init the helper becomes the command, and the socket just closes. The
// server ends when the other end of its socket is closed.
//
// A helper is the copy of one thread of a Go program, without the others. So it
// runs only functions that need nothing of the runtime: they are not split, do
// not allocate, and make raw system calls.
package early
