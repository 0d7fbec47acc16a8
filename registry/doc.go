// Package registry merges toolsets into one table of tools: it implements
// [core.ToolTable].
//
// # Names
//
// Host tools, which are registered in code, have priority: they replace built-in
// tools of the same name. Built-in tools come next. Tools of all other toolsets
// (plugins, MCP servers, skills) keep their name if it is free; otherwise they
// are called source__tool. A name that once belonged to a tool of such a toolset
// is never given to another's, so that a rule or approval for one cannot apply to
// the other. A name that contains two underscores is kept only if it starts with
// the name of its toolset.
//
// Names consist of letters, digits, _ and -, at most 64 of them; other characters
// are replaced by _. If that or the two underscores make source__tool ambiguous,
// a short hash of source and tool is appended.
//
// # Search
//
// If the toolsets have too many tools for the model's prompt, a [Search] leaves
// them out and lets the model search for them.
//
// # Changes
//
// A [Registry] runs nothing in the background. Each call of [Registry.Snapshot]
// checks whether toolsets have changed since the last one, and only then reads
// their tools again.
package registry
