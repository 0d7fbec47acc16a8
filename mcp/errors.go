package mcp

import (
	"errors"
	"fmt"
	"net/http"
)

var (
	// ErrSignIn is wrapped by the error of a server that requires signing in. An
	// [Authorizer] that fails to sign in wraps it, too.
	ErrSignIn = errors.New("sign-in required")
	// ErrClosed is the error of a connection or a host after Close.
	ErrClosed = errors.New("closed")
	// errMessageTooLong is wrapped by the error of a connection whose server
	// sent a message over the size limit.
	errMessageTooLong = errors.New("the message is too long")
)

// ServerError is a failure of a server or of the connection to it.
type ServerError struct {
	Server string
	Err    error
}

// Error implements error.
func (e *ServerError) Error() string {
	if errors.Is(e.Err, ErrSignIn) {
		return fmt.Sprintf("MCP server %s: %v; run: agent mcp login %s", e.Server, e.Err, e.Server)
	}
	return fmt.Sprintf("MCP server %s: %v", e.Server, e.Err)
}

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// Authorizer signs in to servers over HTTP. It wraps base, which sends requests,
// in a round tripper that adds credentials; it returns base for a server that it
// has none for. The variables in s are expanded. A 401 response that it passes on
// becomes an error that wraps [ErrSignIn]; its own errors may wrap it, too.
type Authorizer func(name string, s Server, base http.RoundTripper) http.RoundTripper
