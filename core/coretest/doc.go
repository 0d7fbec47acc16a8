// Package coretest holds what tests of the agent share: the conformance suites
// that every implementation of core's interfaces passes, and doubles for the
// edges of a session.
//
//   - [TestToolset], [TestAsker] and [TestEnvironment] check an implementation against
//     the contract that stands on its interface.
//   - [Model], [AllowAll], [AskAll], [Asker], [MemoryJournal], [MemoryStore],
//     [Clock] and [NewID] make a session deterministic; [Collect] waits for its
//     events without sleeping.
//
// Nothing here is for use outside of tests.
package coretest
