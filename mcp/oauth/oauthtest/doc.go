// Package oauthtest has an authorisation server and an MCP server that trusts
// it, for tests of sign-ins: real HTTP, real checks, and knobs to misbehave.
package oauthtest
