package mcp

import "github.com/seed-009c0928/agent/internal/jsonrpc"

// fields are the parameters of a request.
type fields map[string]any

// outgoing is a message to a server, with additional headers for HTTP.
type outgoing struct {
	jsonrpc.Message
	headers map[string]string
}

// encode returns v as JSON, without HTML escapes.
func encode(v any) []byte { return jsonrpc.Encode(v) }
