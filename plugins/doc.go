// Package plugins runs plugins: third-party programs that provide tools from
// their own processes.
//
// A [Host] finds plugins, verifies that their files are those that the user
// approved, starts each on its first call, confines it to the [Manifest] in its
// plugin.json, and provides it as a [core.Toolset]. A plugin's description is
// read once, when it is added, and cached on disk by the hash of its files: a
// session with twenty plugins starts no process.
//
// Faults of a plugin stay contained. Whatever it prints, sends, asks, or fails
// to answer ends in a result that names it; a crashed process is restarted by
// the next call, after a pause if it keeps crashing; one that hangs is killed
// with its child processes.
//
// The wire protocol is in sdk/toolproto, see docs/plugin-protocol.md.
package plugins
