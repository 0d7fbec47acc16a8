// Package wire is the HTTP client that all providers share: configuration and
// authorization, a request and its streamed answer within time limits, and the
// errors that statuses and bodies stand for.
//
// A provider encodes a request, and reads events with a [Decoder];
// [Client.Stream] does the rest, and keeps the contract of
// [model.Provider]: an answer that breaks off is an error, a consumer that
// stops closes the connection, and no error contains a secret.
//
// Nothing is retried here: [model.WithRetry] does that.
package wire
