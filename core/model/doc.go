// Package model is the vocabulary that every language-model provider and the
// agent loop share: messages and their parts, tool definitions, the request,
// the stream of deltas that answers it, usage, errors, and the retry rule.
//
// It knows no provider and imports the standard library only. A provider has
// one verb, [Provider.Stream]; [Complete] runs it to its end, [Gatherer] joins
// its deltas into a response, and [WithRetry] adds the retry rule.
package model
