package toolproto

import _ "embed" // for Source

// The handshake, as github.com/hashicorp/go-plugin has it: the host starts the
// plugin with the cookie in its environment, and the plugin answers with one
// line on stdout, "1|VERSION|unix|SOCKET|grpc|".
const (
	// Version is the version of the protocol, the second field of the line.
	Version = 1
	// CookieKey and CookieValue are the environment variable by which a plugin
	// knows that a host started it. It is no secret: it keeps people from
	// starting a plugin by hand and wondering.
	CookieKey   = "AGENT_PLUGIN"
	CookieValue = "3f0d6a1c9be24d7f"
	// MaxMessage is the size of a message in bytes that both sides take. What
	// is larger goes in parts.
	MaxMessage = 64 << 20
)

// Source is the text of plugin.proto, for languages that read it at run time.
//
//go:embed plugin.proto
var Source string
