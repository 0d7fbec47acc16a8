// Package bead works on a task in beads: small units of work, each in a session of
// its own, that end with a verification. A task is complete when the commands of its
// criteria succeed, and never because a model says so.
//
// A [Runner] is a state machine whose transitions are events (core/event) in the
// task's journal. [Status] is what the events add up to; whatever process opens the
// journal continues where the last one was. A bead that was caught while it was
// verified is verified again.
//
// What the work is done with comes in as small interfaces: a [Worker] runs sessions,
// [Snapshots] tell what changed and take it back, [Exec] runs the criteria's commands,
// [Impact] knows which tests a change may break, and a [Reviewer] can withhold.
package bead
