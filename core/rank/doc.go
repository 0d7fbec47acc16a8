// Package rank finds the documents that match a query best: a small index in
// memory, ranked by BM25F. It serves the search for tools and skills.
//
// It is not a library, because it searches a few thousand short texts: bleve,
// for one, would add ten megabytes of storage engines and analysers to the
// binary, for 300 lines of arithmetic. Half of those texts are also identifiers,
// which [Tokens] splits.
package rank
