// Package plugintest drives plugins over the wire without an agent: [Driver] is the
// host's side of the protocol, and [Checks] what an agent expects of every plugin, in
// any language. Package sdk/sdktest and "agent plugins test" run it.
package plugintest
