// Package approvals holds what the user approved for a session and its
// subagents.
package approvals
