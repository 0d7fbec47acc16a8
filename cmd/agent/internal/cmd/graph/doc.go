// Package graph is the command agent graph: what depends on what in the workspace,
// what a change may break, and the tests that show it.
package graph
