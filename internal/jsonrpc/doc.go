// Package jsonrpc has the messages of JSON-RPC 2.0, for the client and the server
// of the Model Context Protocol, and connections over lines, for editors, or with
// headers, for language servers.
package jsonrpc
