// Package model is the vocabulary that every language-model provider and the
// agent loop share: messages and their parts, tool definitions, the request,
// the stream of deltas that answers it, usage, errors, and the retry rule.
//
// It knows no provider and imports the standard library only. A provider is
// one verb, [Provider.Stream]; [Complete] drains it, [Gatherer] folds its deltas
// into a whole response, and [WithRetry] wraps it with the one retry rule.
package model
