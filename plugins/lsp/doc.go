// Package lsp talks to language servers: problems in files that were edited, where
// a symbol is defined and used, and the edits that rename it.
//
// [Find] finds servers on the machine; none is ever downloaded. The package is the
// bundled plugin "lsp" ([Plugin]), in whose process, and sandbox, the servers run:
// they read the workspace and write only the plugin's data directory. So the plugin
// changes no files: a [Query] for a rename has edits as its [Answer], which the agent
// checks against the permission rules and makes.
//
// All sessions of an agent share the servers. A server starts with the first file
// of its languages, and ends with the plugin. One that crashes is started again, with
// a growing pause from the second time in a row on. One that does not answer is ended.
//
// Files are what is on disk, unless a [File] has other text, such as an editor's.
// Positions are in the encoding that a server chooses; a [Range] is in bytes.
package lsp
