// Package env contains the local execution environments: [Local] works on the
// local files and starts local processes, [Memory] keeps a file tree in memory
// for tests and for hosts without a disk. [ReadOnly] and [Logging] wrap any
// environment. Remote environments are separate packages: core/env/docker,
// core/env/k8s and core/env/ssh.
//
// Every environment here passes coretest.TestEnvironment.
package env
