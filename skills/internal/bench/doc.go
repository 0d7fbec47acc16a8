// Command bench scores the matching of skills on labelled queries:
//
//	go run ./skills/internal/bench [-data DIR] [-json] [SUITE…]
//
// DIR holds skills.json (or skills.json.gz), a list of {suite, name, description,
// body}, and
// queries.jsonl, lines of {suite, id, query, expected, neg_of}: the names of
// the skills that the query's author expects, none for a near miss of neg_of.
// Without -data, the small copy in testdata is used.
//
// A suite is divided into pools of about 26 skills, which are matched alone, with
// the bundled skills, and among 526 with those of other suites, which need no
// queries. For each kind of pool it reports the ranking (hit@1, hit@3,
// shortlist@12), the
// activation (precision, recall, false activations on near misses and on the
// queries of other suites), the cost in tokens and time, and 95 % intervals by
// bootstrap over queries. Queries that contain the expected skill's name are
// easy and reported separately.
package main
