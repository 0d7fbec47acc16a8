// Package envtest helps to test environments that are somewhere else:
// [TestHardCases] tries what coretest.TestEnvironment does not, and [Engine]
// plays the far side of a command line tool such as docker by really running
// the commands on this machine.
package envtest
