// Package oauthtest has an authorization server and an MCP server that trusts it,
// for tests of signing in: real HTTP, real checks, and options to misbehave.
package oauthtest
