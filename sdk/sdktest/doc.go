// Package sdktest tests plugins without an agent. [Start] runs a plugin inside
// of the test, [StartBinary] as the process that it will be, in any language;
// [Conforms] holds either to what an agent expects of every plugin.
package sdktest
