// Command bench scores the matching of skills on labelled queries:
//
//	go run ./skills/internal/bench [-data DIR] [-json] [SUITE…]
//
// DIR holds skills.json, a list of {suite, name, description, body}, and
// queries.jsonl, lines of {suite, id, query, expected, neg_of}: the names of
// the skills that the query's author expects, none for a near miss of neg_of.
// Without -data it is the small copy in testdata.
//
// For each suite it reports how well words rank (hit@1, hit@3, shortlist@12),
// how well the full texts are chosen (precision and recall of activation,
// false activations on near misses and on the queries of other suites), what
// that costs in tokens and time, and 95 % intervals by bootstrap over queries.
// Queries that hold the expected skill's name are easy and reported apart.
package main
