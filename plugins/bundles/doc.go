// Package bundles reads plugins that hold more than a program: skills, commands,
// agent types, hooks, MCP and language servers, user settings and context files, in the forms of
// Agent Plugins 1.0, Claude Code, Gemini CLI, Codex, Cursor and this program.
//
//	b, err := bundles.Read(dir, "", nil)
//
// A [Bundle] names everything that was found. What cannot be used is in its
// Unusable list with the reason, and the rest works: one bad skill costs one skill.
// Reading runs nothing, follows no links and never leaves the folder.
//
// [Bundle.Fill] puts values in the place of variables, where the format of the
// bundle says so and nowhere else.
package bundles
