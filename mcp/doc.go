// Package mcp connects to Model Context Protocol servers and offers their tools
// to the agent.
//
// A [Host] owns the connections to all configured servers. It is lazy: the
// tools of a server are known from a cache on disk, and the server starts with
// the first call of one. Each server has one process or one HTTP session, shared
// by all callers, and is a separate [core.Toolset] ([Host.Toolsets]).
//
// A [Conn] is one connection, made by [Connect]: the transport, the handshake
// of the modern (since 2026-07-28) or legacy protocol, and the requests. Below
// it are a JSON-RPC session and three transports (stdio, streamable HTTP, and
// the SSE of 2024-11-05), designed for servers that misbehave: a server may
// exit at any time, cannot block a caller beyond its context, and the size of
// its messages is limited. Schemas and results are kept byte for byte. The
// protocol's types are those of mark3labs/mcp-go.
//
// # Trust
//
// Servers are not trusted. Their processes run on the host, not in the agent's
// restricted environment: the permission policy decides on each call (scope mcp,
// resource "server/tool"), and the sandbox confines the process. Tool
// definitions are pinned when first seen; a changed one is blocked until the
// user has approved the difference. What a server claims about its tools, such
// as that they are read-only, grants nothing.
package mcp
