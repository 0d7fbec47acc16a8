package mcp

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is a JSON-RPC message of any kind.
type message struct {
	Version string                   `json:"jsonrpc"`
	ID      json.RawMessage          `json:"id"`
	Method  string                   `json:"method"`
	Params  json.RawMessage          `json:"params"`
	Result  json.RawMessage          `json:"result"`
	Error   *mcp.JSONRPCErrorDetails `json:"error"`
}

// parseMessage decodes a message. The error says that it is none.
func parseMessage(data []byte) (message, error) {
	var m message
	err := json.Unmarshal(data, &m)
	return m, err
}

// hasID reports whether it is a request or a response.
func (m message) hasID() bool { return len(m.ID) > 0 && string(m.ID) != "null" }
