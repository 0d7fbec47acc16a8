// Package cassette records what a provider and its service say to each other,
// and plays it back without the service: tests of skills, plugins, policies and
// prompts run in CI without a key and without a network, and fail when what is
// asked of the model changes.
//
// [Record] and [Replay] make an [http.RoundTripper], which is the Transport of
// a provider's configuration:
//
//	rec, err := cassette.Record("testdata/fix.yaml", transport, opts)
//	provider, err := openai.New(openai.Config{Config: wire.Config{Transport: rec, …}})
//
// A cassette is a file of YAML documents, one for each exchange, to be read and
// compared by people: bodies that are JSON stand there indented. It holds no
// credential: headers are written by a list of harmless ones, and everything
// else goes through core/redact. What a prompt or an answer says stays in it;
// look at it before it is published.
//
// Replay is strict. A request that was not recorded fails, and the error says
// where it differs from the one that was next. What legitimately differs from
// place to place (a directory, a date) is named by [Options.Stable], what
// differs from run to run (a duration in a tool's output) by [Options.Ignore].
package cassette
