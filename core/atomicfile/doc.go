// Package atomicfile replaces files as a whole: whatever fails, even the
// process, a reader finds the old content or the new.
//
// The new content is written to a temporary file in the same directory, synced,
// and renamed. Locking out other writers is the caller's job; without a lock
// the last one wins.
package atomicfile
