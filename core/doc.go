// Package core is the contract of the agent and its loop.
//
// A [Session] takes an input, asks a [model.Provider] for an answer, runs the
// tool calls in it, and goes on until the model is done. What it works with
// comes in through [Config]: tools ([Tool], [Toolset], [ToolTable]), the place
// where they work ([Environment]), who decides what they may do ([Policy],
// [Asker]), what is told to the model ([Profile], [ContextSource]), and where
// it is written down ([Journal], [ContextStore]). Whoever watches reads events
// ([Session.Events]).
//
// Every tool call of every source goes through one function, runTool in
// runtool.go; no tool asks for its own permission. docs/architecture.md
// follows one input through the files.
package core
