// Package worktree is the command agent worktrees: list the worktrees of sessions,
// show what changed in one, and apply it, keep it as a branch, or remove it.
package worktree
