// Package plugins is the host of plugins: programs of other people that offer
// tools from processes of their own.
//
// A [Host] finds plugins, verifies that their files are those that the person
// agreed to, starts a plugin with its first call, confines it to what its
// plugin.json says ([Manifest]), and makes a [core.Toolset] of it. All that a
// plugin says of itself is read once, when it is added, and kept on disk by the
// hash of its files: a session with twenty plugins starts no process.
//
// Nothing that a plugin does reaches beyond itself. Whatever it prints, sends,
// asks, or fails to answer ends in a result that names it; a process that died
// is started anew by the next call, after a pause if it keeps dying; one that
// hangs is killed, and all that it started with it.
//
// The wire is sdk/toolproto; docs/plugin-protocol.md explains it.
package plugins
