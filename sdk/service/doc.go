// Package service runs sessions on many machines. Programs send commands to sessions;
// workers take the sessions that have work, run them, and let go of those that wait:
// for the next input, or for the answer to a question, however long it takes. If a
// worker dies, another one takes its sessions over.
//
// An [Engine] keeps the sessions, the commands and the leases of workers;
// [github.com/seed-009c0928/agent/sdk/service/jetstream] has one on NATS JetStream. What
// a session is made of, such as the model and the directory, comes in as an [Opener].
//
// # Promises
//
// A command is carried out once. It is kept until its result is in the session's log,
// and a worker that takes over finds in the log what is done already. What was going
// on when a worker died is settled as for any resumed session: a model call is made
// again, a call that only reads is run again, another one is answered as interrupted.
//
// One worker writes a session. A worker that lost its lease ends the session before
// the next tool starts, and if it cannot know, its next record is refused with
// [core.ErrFenced]. A command that was running on a lost machine may still be running.
package service
