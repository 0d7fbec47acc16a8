// Package server lets other programs use the agent over the Model Context
// Protocol: its tools, and run_task, which gives the agent a whole task.
//
// A [Server] knows neither settings nor providers: [Options.Open] opens
// sessions of the agent, and every call, even of a single tool, goes through one,
// so that the permission policy applies. Its permission requests go to the client
// as elicitations; if the client does not support them, the call is denied.
//
// All versions of the protocol are implemented, with the types of
// mark3labs/mcp-go: up to 2025-11-25 with sessions, since 2026-07-28 without.
// There are two transports: stdio ([Server.ServeStdio]), for a client that starts
// this program, and streamable HTTP on a loopback address ([Server.ServeHTTP]),
// for clients that have the token. The latter rejects what a web page could send:
// foreign names in Host and Origin, and requests without the token. Neither
// relies on a client to end its messages, to read its responses or to come back.
package server
