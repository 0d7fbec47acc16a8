// Package envtest helps to test remote environments: [TestHardCases] covers what
// coretest.TestEnvironment does not, and [Engine] is a fake backend of a command
// line tool such as docker that runs the commands on this machine.
package envtest
