package mcp

import (
	"errors"
	"fmt"
	"net/http"
)

var (
	// ErrSignIn is wrapped by the error of a server that lets nobody in who has
	// not signed in. Whatever signs in ([Authorizer]) wraps it, too.
	ErrSignIn = errors.New("sign-in is needed")
	// ErrClosed is the error of a connection or a host after Close.
	ErrClosed = errors.New("closed")
	// ErrMessageTooLong is wrapped by the error of a connection whose server
	// sent more in one message than it may.
	ErrMessageTooLong = errors.New("the message is too long")
)

// ServerError is a failure of a server, or on the way to it.
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

// Authorizer signs in to servers that are reached by HTTP. It returns what
// signs in on top of base, which reaches the network, or base for a server
// that it has nothing for. The name is that of the server, whose settings have
// their variables put in. A response of 401 that it lets through becomes an
// error that wraps [ErrSignIn], as does an error of its own that wraps it.
type Authorizer func(name string, s Server, base http.RoundTripper) http.RoundTripper
