// Package sdktest tests plugins without an agent. [Start] runs a plugin inside the
// test, [StartBinary] as a process, written in any language; [Conforms] checks what
// an agent expects of every plugin.
package sdktest
