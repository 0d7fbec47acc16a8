// Package graph knows which code of a workspace depends on which: it parses the
// source files, links calls, references, imports and types to what they name, and
// answers what a change may break and which tests show it.
//
// # Promises
//
// Every edge has a [Confidence] that is measured (docs/graph.md). What cannot be
// resolved becomes a warning or nothing, never a guess: an ambiguous name has no
// edges. Go is checked with go/types, with the packages of other modules left
// empty, so that neither the go command nor the network is needed. Python,
// JavaScript and TypeScript, Java, Rust, C and C++ are read by scanners that know
// the structure of a language but not its types.
//
// # Index
//
// An [Index] keeps the facts of each file by the hash of its content in a
// directory of its own outside the workspace, so that a repository cannot plant
// them. Refresh reads only what changed; the [Graph] changes with it.
//
// The package is also the bundled plugin "graph" ([Plugin]): the tools get_impact
// and graph_query, and context for the user's inputs.
package graph
