// Package registry merges toolsets into one table of tools: it implements
// [core.ToolTable].
//
// # Names
//
// Tools that the host registers in code come first: one of them replaces a
// built-in tool of its name. Built-in tools come second. Tools of all other
// toolsets (plugins, MCP servers, skills) keep their name as long as nobody has
// it; otherwise the tool is called source__tool. A name that once belonged to a
// tool of such a toolset never goes to another's, so that a rule or a yes for
// one cannot come to mean the other. A name with two underscores in it is taken
// as it is only from the toolset that it begins with.
//
// In names only letters, digits, _ and - are left, and at most 64 of them. Where
// that or the two underscores make source__tool ambiguous, a short hash of
// source and tool is appended.
//
// # Search
//
// When the tools of toolsets are too many for the model's prompt, a [Search]
// leaves them out and lets the model search for them.
//
// # Changes
//
// A [Registry] runs nothing in the background. Each call of
// [Registry.Snapshot] looks whether a toolset has changed since the last one,
// and only then reads its tools again.
package registry
