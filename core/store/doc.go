// Package store keeps sessions on disk.
//
// A [Journal] is a session's log: an append-only file of JSON lines, one event
// per line. It implements core.Journal. One process at a time has it open; a
// record that a crash left incomplete is removed when the log is opened again,
// so that a crash loses at most the record being written. Known secrets and what
// looks like a key are replaced before a record is written.
//
// A [Context] keeps what is too large for a turn: the full output of tools and
// the bytes of images. It implements core.ContextStore.
//
// Files are readable by their owner only. [List], [Latest], [Find] and [Stat]
// find sessions, [Read] reads one that may be open elsewhere, [Dirs] forks and
// deletes them, [RepairLog] cuts off the damaged end of a log, [Clean] removes the
// contexts of deleted sessions.
package store
