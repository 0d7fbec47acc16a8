// Package wire is the HTTP side that all providers share: where a service is
// and how to authorize, one request and its streamed answer within time limits,
// server-sent events, and the errors that statuses and bodies stand for.
//
// A provider encodes a request, and reads events with a [Decoder];
// [Client.Stream] does the rest, and keeps the contract of
// [model.Provider]: an answer that breaks off is an error, a consumer that
// stops closes the connection, and no error holds a secret.
//
// Nothing is retried here: [model.WithRetry] does that.
package wire
