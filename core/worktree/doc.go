// Package worktree makes copies of a workspace in which something can be tried,
// and brings back what changed there.
//
// A worktree has the files of the workspace as they are, untracked ones included
// and ignored ones not, and, if the workspace is in a git repository, a
// separate repository that borrows the user's objects: the same branches and
// staged changes, and a branch agent/NAME. Other than with git worktree, nothing
// that happens in it reaches the user's index, HEAD, stash or branches. Without
// git, it is a copy of all files.
//
// What changed in a worktree is the difference between two snapshots
// (core/snapshot). It can be applied to the workspace, merged with what changed
// there meanwhile, become a branch of the user's repository, or be dropped.
//
// A worktree that is not to be kept ends with its process: [Sweep] removes those
// of processes that were killed.
package worktree
