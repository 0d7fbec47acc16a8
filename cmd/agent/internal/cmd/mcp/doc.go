// Package mcp is the command agent mcp: manage MCP servers, sign in to them, and
// run the agent as one.
package mcp
