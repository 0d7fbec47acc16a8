package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// probeShare is the divisor of the start timeout for probing the modern protocol
// before the legacy one is tried.
const probeShare = 2

// handshake negotiates the protocol version and reads the server's capabilities.
// Since 2026-07-28 requests are independent, and server/discover returns them; a
// server that does not support it gets the handshake of the legacy protocol.
// Version is empty if unknown.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
func (c *Conn) handshake(ctx context.Context, version string) error {
	if _, old := c.link.(*sseLink); !old && (version == "" || mcp.IsModernProtocol(version)) {
		older, err := c.discover(ctx, cmp.Or(version, mcp.LATEST_PROTOCOL_VERSION))
		if err == nil || older == "" || ctx.Err() != nil {
			return err
		}
		version = older
	}
	return c.initialize(ctx, cmp.Or(version, mcp.LATEST_LEGACY_PROTOCOL_VERSION))
}

// discover reads the capabilities of a server of the modern protocol. If it is
// not one, older is the version to try.
func (c *Conn) discover(ctx context.Context, version string) (older string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.server.startTimeout()/probeShare)
	defer cancel()
	for again := true; ; again = false {
		c.protocol.Store(version)
		var text json.RawMessage
		if text, err = c.do(ctx, mcp.MethodServerDiscover, nil); err == nil {
			err = c.discovered(text)
		}
		if err == nil {
			return "", nil
		}
		supported := supportedBy(err)
		version = mcp.NegotiateMutuallySupportedVersion(supported)
		switch {
		case again && mcp.IsModernProtocol(version): // possibly the one that was just rejected
			continue
		case len(supported) > 0 && version == "":
			return "", c.wrap(fmt.Errorf("unsupported protocol versions %s; supported are %s", clip(cleanLine(strings.Join(supported, ", ")), 200), strings.Join(mcp.ValidProtocolVersions, ", ")))
		case errors.Is(err, ErrSignIn), errors.Is(err, errMessageTooLong), c.ctx.Err() != nil:
			return "", err
		case version == "" || mcp.IsModernProtocol(version):
			version = mcp.LATEST_LEGACY_PROTOCOL_VERSION
		}
		c.protocol.Store("")
		return version, err
	}
}

// supportedBy returns the versions that a server lists when it rejects ours.
func supportedBy(err error) []string {
	var data mcp.UnsupportedProtocolVersionData
	if e := (*RPCError)(nil); errors.As(err, &e) && e.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		_ = json.Unmarshal(e.Data, &data) // invalid data lists none
	}
	return data.Supported
}

// discovered takes the result of server/discover. Some legacy servers answer {}
// to unknown methods.
func (c *Conn) discovered(text json.RawMessage) error {
	var r mcp.DiscoverResult
	if err := json.Unmarshal(text, &r); err != nil || !slices.ContainsFunc(r.SupportedVersions, mcp.IsModernProtocol) {
		return errors.New("the response to server/discover lists no modern protocol version")
	}
	var server mcp.Implementation
	if s := r.GetResultMeta().ServerInfo(); s != nil {
		server = *s
	}
	c.info = newInfo(c.version(), server, r.Capabilities, r.Instructions)
	return nil
}

// initialize does the handshake of the legacy protocol.
func (c *Conn) initialize(ctx context.Context, version string) error {
	text, err := c.do(ctx, mcp.MethodInitialize, fields{
		"protocolVersion": version, "clientInfo": c.about[mcp.MetaKeyClientInfo], "capabilities": c.about[mcp.MetaKeyClientCapabilities],
	})
	if status := (*statusError)(nil); errors.As(err, &status) && status.code/100 == 4 && !errors.Is(err, ErrSignIn) {
		return fmt.Errorf("%w: %w", errNotStreamable, err)
	}
	if err != nil {
		return err
	}
	var r mcp.InitializeResult
	if err := json.Unmarshal(text, &r); err != nil {
		return c.wrap(fmt.Errorf("invalid response to the handshake: %w", err))
	}
	if !mcp.IsValidProtocolVersion(r.ProtocolVersion) {
		return c.wrap(fmt.Errorf("unsupported protocol version %.40q; supported are %s", r.ProtocolVersion, strings.Join(mcp.ValidProtocolVersions, ", ")))
	}
	c.protocol.Store(r.ProtocolVersion)
	c.info = newInfo(r.ProtocolVersion, r.ServerInfo, r.Capabilities, r.Instructions)
	return c.wrap(c.sendNotification(ctx, mcp.MethodNotificationInitialized, nil))
}

func newInfo(version string, server mcp.Implementation, can mcp.ServerCapabilities, instructions string) Info {
	return Info{
		Name: clip(cleanLine(server.Name), 100), Title: clip(cleanLine(server.Title), 100), Version: clip(cleanLine(server.Version), 100),
		Protocol: version, Instructions: clip(cleanText(instructions), 8000),
		Tools: can.Tools != nil, Resources: can.Resources != nil, Prompts: can.Prompts != nil, Completions: can.Completions != nil,
		Subscribe: can.Resources != nil && can.Resources.Subscribe, Logging: can.Logging != nil,
		Tasks: can.Tasks != nil && can.Tasks.Requests != nil && can.Tasks.Requests.Tools != nil && can.Tasks.Requests.Tools.Call != nil,
	}
}
