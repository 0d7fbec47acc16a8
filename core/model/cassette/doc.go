// Package cassette records the HTTP exchanges of a provider and replays them
// without the service: tests of skills, plugins, policies and prompts run in CI
// without a key and a network, and fail when the requests change.
//
// [Record] and [Replay] return an [http.RoundTripper] for the Transport of a
// provider's configuration:
//
//	rec, err := cassette.Record("testdata/fix.yaml", transport, opts)
//	provider, err := openai.New(openai.Config{Config: wire.Config{Transport: rec, …}})
//
// A cassette, or recording, is a file of YAML documents, one for each exchange,
// made for reading and diffs: JSON bodies are indented. It contains no
// credentials: only known harmless headers are written, and everything else is
// redacted by core/redact. Prompts and answers are written in full; check them
// before publishing the file.
//
// Replay is strict. A request that was not recorded fails, and the error shows
// where it differs from the next recorded one. [Options.Stable] names texts that
// differ between machines (a directory, a date), [Options.Ignore] matches what
// differs between runs (a duration in a tool's output).
package cassette
