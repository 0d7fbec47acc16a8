// Package server lets other programs use the agent over the Model Context
// Protocol: its tools, and run_task, which gives the agent a whole task.
//
// A [Server] knows neither settings nor providers: [Options.Open] opens
// sessions of the agent, and every call, also that of a single tool, goes
// through one. So the permission policy decides here as anywhere. What it would
// ask a person goes to the client as an elicitation, where that knows such, and
// is denied where it does not: no call waits for somebody who is not there.
//
// The protocol is here in all of its versions, over mark3labs/mcp-go's types:
// up to 2025-11-25 with a session of the client, since 2026-07-28 without. Two
// ways lead in: standard input and output ([Server.ServeStdio]), for a client
// that starts this program, and streamable HTTP on a port of this machine
// ([Server.ServeHTTP]), for who knows the token. That one turns away what a web
// page could send: foreign names in Host and Origin, and requests without the
// token. Neither trusts a client to end its messages, to read its answers or
// to come back.
package server
