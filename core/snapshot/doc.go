// Package snapshot keeps what a directory was: it takes snapshots of a workspace,
// tells what changed between two of them, and brings an earlier state back.
//
// Snapshots are git objects in a bare repository outside the workspace, which any
// git can read. This package writes them itself: no filter, hook or attribute of
// the workspace applies, and the repository that the workspace may be in is
// neither read nor written. A snapshot holds files with their content and
// permissions, symbolic links and directories, empty ones included. It leaves out
// what git ignores, unless a path was named, repositories within the workspace,
// and files that are too large or cannot be read; it records what it left out.
//
// A scan compares each file's size, times, mode and inode with those of the
// previous scan, and reads only what differs, or what changed so shortly before
// it was read that the times prove nothing.
package snapshot
