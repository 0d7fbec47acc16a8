// Package changes tells what tool calls change in the workspace, and takes it
// back. A [Tracker] watches a session: it takes a snapshot (core/snapshot) before
// and after each call that may change files, whatever the tool, so that edits,
// commands, plugins and MCP servers are covered alike. What changes between two
// calls is not a session's doing, and an undo leaves it alone.
//
// The session's record has an event.FilesChanged for each such call, with the two
// snapshots. Undo and redo work from these events alone, also long after the
// session.
package changes
