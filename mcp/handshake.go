package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// probeShare is which part of the time for the handshake the newest protocol
// gets before an older one is tried.
const probeShare = 2

// handshake finds out which version of the protocol the server speaks, and what
// it has. From 2026-07-28 on each request stands for itself, and server/discover
// tells; a server that does not know it is of the old era, and gets the
// handshake of that. Version is empty where it is not known.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
func (c *Conn) handshake(ctx context.Context, version string) error {
	if _, old := c.link.(*sseLink); !old && (version == "" || mcp.IsModernProtocol(version)) {
		older, err := c.discover(ctx, orElse(version, mcp.LATEST_PROTOCOL_VERSION))
		if err == nil || older == "" || ctx.Err() != nil {
			return err
		}
		version = older
	}
	return c.initialize(ctx, orElse(version, mcp.LATEST_LEGACY_PROTOCOL_VERSION))
}

// discover asks a server of the new era for what it has. Older is the version
// to try if it is none.
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
		case again && mcp.IsModernProtocol(version): // it may be the one that was refused
			continue
		case len(supported) > 0 && version == "":
			return "", c.wrap(fmt.Errorf("it speaks the protocol versions %s; known here are %s", clip(cleanLine(strings.Join(supported, ", ")), 200), strings.Join(mcp.ValidProtocolVersions, ", ")))
		case errors.Is(err, ErrSignIn), errors.Is(err, ErrMessageTooLong), c.ctx.Err() != nil:
			return "", err
		case version == "" || mcp.IsModernProtocol(version):
			version = mcp.LATEST_LEGACY_PROTOCOL_VERSION
		}
		c.protocol.Store("")
		return version, err
	}
}

// supportedBy returns the versions that a server names which refuses ours.
func supportedBy(err error) []string {
	var data mcp.UnsupportedProtocolVersionData
	if e := (*RPCError)(nil); errors.As(err, &e) && e.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		_ = json.Unmarshal(e.Data, &data) // then it names none
	}
	return data.Supported
}

// discovered takes the result of server/discover. A server that answers {} to
// whatever it does not know is of no new era.
func (c *Conn) discovered(text json.RawMessage) error {
	var r mcp.DiscoverResult
	if err := json.Unmarshal(text, &r); err != nil || !slices.ContainsFunc(r.SupportedVersions, mcp.IsModernProtocol) {
		return errors.New("the server answers, but names no versions")
	}
	var server mcp.Implementation
	if s := r.GetResultMeta().ServerInfo(); s != nil {
		server = *s
	}
	c.info = infoOf(c.version(), server, r.Capabilities, r.Instructions)
	return nil
}

// initialize is the handshake of the old era.
func (c *Conn) initialize(ctx context.Context, version string) error {
	text, err := c.do(ctx, mcp.MethodInitialize, fields{
		"protocolVersion": version, "clientInfo": c.about[mcp.MetaKeyClientInfo], "capabilities": c.about[mcp.MetaKeyClientCapabilities],
	})
	if status := (*statusError)(nil); errors.As(err, &status) && status.code/100 == 4 && !errors.Is(err, ErrSignIn) {
		return fmt.Errorf("%w: %w", errNoEndpoint, err)
	}
	if err != nil {
		return err
	}
	var r mcp.InitializeResult
	if err := json.Unmarshal(text, &r); err != nil {
		return c.wrap(fmt.Errorf("its answer to the handshake cannot be read: %w", err))
	}
	if !mcp.IsValidProtocolVersion(r.ProtocolVersion) {
		return c.wrap(fmt.Errorf("unsupported protocol version %.40q; known here are %s", r.ProtocolVersion, strings.Join(mcp.ValidProtocolVersions, ", ")))
	}
	c.protocol.Store(r.ProtocolVersion)
	c.info = infoOf(r.ProtocolVersion, r.ServerInfo, r.Capabilities, r.Instructions)
	return c.wrap(c.tell(ctx, mcp.MethodNotificationInitialized, nil))
}

func infoOf(version string, server mcp.Implementation, can mcp.ServerCapabilities, instructions string) Info {
	return Info{
		Name: clip(cleanLine(server.Name), 100), Title: clip(cleanLine(server.Title), 100), Version: clip(cleanLine(server.Version), 100),
		Protocol: version, Instructions: clip(cleanText(instructions), 8000),
		Tools: can.Tools != nil, Resources: can.Resources != nil, Prompts: can.Prompts != nil, Completions: can.Completions != nil,
		Subscribe: can.Resources != nil && can.Resources.Subscribe, Logging: can.Logging != nil,
		Tasks: can.Tasks != nil && can.Tasks.Requests != nil && can.Tasks.Requests.Tools != nil && can.Tasks.Requests.Tools.Call != nil,
	}
}
