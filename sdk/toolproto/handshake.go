package toolproto

import _ "embed" // for Source

// The handshake of github.com/hashicorp/go-plugin: the host starts the plugin with
// the cookie in its environment, and the plugin answers with one line on stdout,
// "1|VERSION|unix|SOCKET|grpc|".
const (
	// Version is the version of the protocol, the second field of the line.
	Version = 1
	// CookieKey and CookieValue are the environment variable that tells a plugin
	// that a host started it. It is not a secret: it only lets a plugin explain
	// itself to users who start it by hand.
	CookieKey   = "AGENT_PLUGIN"
	CookieValue = "3f0d6a1c9be24d7f"
	// MaxMessage is the maximum size of a message in bytes that both sides accept.
	// Larger results are sent in parts.
	MaxMessage = 64 << 20
	// Window is the flow control window in bytes of connections and streams. A fixed one
	// saves the messages that measure the bandwidth of a network, which is not there.
	Window = 1 << 20
)

// Source is the text of plugin.proto, for languages that load it at run time.
//
//go:embed plugin.proto
var Source string

// The features of a host besides what version 1 began with; see DescribeRequest.
const (
	FeatureHooks     = "hooks"     // hooks of plugins
	FeatureSettings  = "settings"  // settings in SessionInfo
	FeatureQuestions = "questions" // Ask
	FeatureModel     = "model"     // Sample
)
