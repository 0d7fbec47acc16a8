// Package toolproto is the wire between an agent and its plugins: the
// messages of plugin.proto, and the constants of the handshake. Authors of
// plugins in Go use package sdk, which hides it; docs/plugin-protocol.md
// explains it to everybody else.
//
// After a change of plugin.proto run go generate here; it needs protoc.
package toolproto

//go:generate sh generate.sh .
