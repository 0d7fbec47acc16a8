// Package store keeps sessions on disk.
//
// A [Journal] is a session's log: one file of JSON lines, an event each, that
// is only ever appended to. It implements core.Journal. One process at a time
// has it open; a record that a crash cut off is cut away when it is opened
// again, so that a crash costs at most the record being written. Known secrets
// and what looks like a key are replaced before a record is written.
//
// A [Context] keeps what is too large for a turn beside the log: the full
// output of tools and the bytes of images. It implements core.ContextStore.
//
// Files are readable by their owner only. [List], [Latest], [Find] and [Stat]
// find sessions, [Read] reads one that may be open elsewhere, [Dirs] forks and
// deletes them, [Mend] cuts off what was damaged, [Clean] removes the contexts of
// those that are gone.
package store
