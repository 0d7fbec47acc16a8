// Package mcp connects to Model Context Protocol servers and offers what they
// have as tools of the agent.
//
// A [Host] owns the connections to all configured servers. It is lazy: the
// tools of a server are known from a cache on disk, and the server starts when
// one of them is called first. There is one process, or one HTTP session, for
// each server, whoever calls. Each server is a [core.Toolset] of its own
// ([Host.Toolsets]).
//
// A [Conn] is one connection, made by [Connect]: the transport, the handshake
// in whichever era of the protocol the server lives, and the requests. Below it
// are a session of JSON-RPC and three transports (stdio, streamable HTTP, and
// the SSE of 2024-11-05), made for foreign processes: they end, they cannot
// block a caller past its context, and what they send is bounded and kept to
// the byte. The protocol's types are mark3labs/mcp-go's.
//
// # Trust
//
// A server is somebody else's program, and what it says is somebody else's
// word. Its processes run beside the agent, not within the agent's restricted
// environment: the permission policy decides on each call (scope mcp, resource
// "server/tool"), and the sandbox bounds the process. Definitions of tools are
// pinned when they are first seen: one that changes is blocked until the
// person has seen the difference. What a server claims about its tools, such
// as that they only read, allows nothing.
package mcp
