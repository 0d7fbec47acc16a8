package mcp

import "github.com/seed-009c0928/agent/mcp/internal/jsonrpc"

// fields are the parameters of a request.
type fields map[string]any

// outgoing is a message to a server, with the headers that go beside it over
// HTTP.
type outgoing struct {
	jsonrpc.Message
	headers map[string]string
}

// encode is JSON without the escapes that HTML needs, and without a line end.
func encode(v any) []byte { return jsonrpc.Encode(v) }
