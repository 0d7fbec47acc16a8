// Package coretest has conformance suites for implementations of core's
// interfaces, and test doubles for sessions.
//
//   - [TestToolset], [TestAsker] and [TestEnvironment] check an implementation
//     against the contract of its interface.
//   - [Model], [AllowAll], [AskAll], [Asker], [MemoryJournal], [MemoryStore],
//     [Clock] and [NewID] make a session deterministic; [Collect] waits for its
//     events without sleeping.
//
// It is for use in tests only.
package coretest
