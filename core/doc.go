// Package core is the contract of the agent and its loop.
//
// A [Session] takes an input, asks a [model.Provider] for an answer, runs the
// tool calls in it, and repeats until the model is done. Its dependencies come
// in through [Config]: tools ([Tool], [Toolset], [ToolTable]), the environment
// they work in ([Environment]), permissions ([Policy], [Asker]), what the model
// is told ([Profile], [ContextSource]), and where the session is stored
// ([Journal], [ContextStore]). Observers read events ([Session.Events]).
//
// Every tool call of every source goes through one function, runTool in
// runtool.go; no tool asks for its own permission. docs/architecture.md
// follows one input through the files.
package core
