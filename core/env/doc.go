// Package env holds the execution environments that need nothing but this
// machine: [Local] works on its files and starts its processes, [Memory] keeps
// a file tree for tests and for hosts that have no disk to offer. [ReadOnly]
// and [Logging] wrap any environment. Environments elsewhere are packages of
// their own: core/env/docker, core/env/k8s and core/env/ssh.
//
// Every environment here passes coretest.TestEnvironment.
package env
