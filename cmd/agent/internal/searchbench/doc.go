// Command searchbench measures the tools grep and glob beside ripgrep and fd, in
// the same trees, in turns, and prints the ratios.
//
//	go run ./cmd/agent/internal/searchbench [-runs N] [-only TEXT] [-check] [-page docs/performance.md]
//
// The tools are called in this process as a session does: with the grants of the
// permission policy, over the local environment. Ripgrep and fd get the options
// for the same files and the same meaning, print in no order (which is when they
// use all cores), and are timed from the start of their process to its end. Before
// the times count, the results must be the same.
//
// The floor is what no search can do without: to read the directories of the tree
// and, for grep, to open, read and close each file of it, on all cores, without
// rules, checks or matching.
package main
