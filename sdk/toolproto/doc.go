// Package toolproto is the wire protocol between an agent and its plugins: the
// messages of plugin.proto, and the constants of the handshake. Plugins in Go use
// package sdk, which hides it; docs/plugin-protocol.md documents it for other
// languages.
//
// After changing plugin.proto, run go generate here; it requires protoc.
package toolproto

//go:generate sh generate.sh .
