// Package privatefile changes small files that only their owner may read, such
// as settings: under a lock, so that of two programs that change one neither
// undoes the other's work, and as a whole, so that a crash leaves the old file
// or the new one.
package privatefile
