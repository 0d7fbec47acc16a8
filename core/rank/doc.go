// Package rank finds the documents that fit a query best: a small index in
// memory, ranked by BM25F. Tools, skills and whatever else the model may search
// for are ranked by it.
//
// It is our own, because what is searched here is a few thousand short texts: a
// search library such as bleve would add ten megabytes of storage engines and
// analysers to the binary, for 300 lines of arithmetic. Those texts are also
// half names of code, which [Tokens] takes apart.
package rank
