// Package jsonrpc has the messages of JSON-RPC 2.0, as the client and the
// server of the Model Context Protocol send and take them.
package jsonrpc
