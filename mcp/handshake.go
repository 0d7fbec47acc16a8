package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// A server that ignores the probe for the modern protocol is asked for the legacy
// one, too, after this time: 2 seconds, or this share of a short start timeout.
const (
	probePatience = 2 * time.Second
	probeShare    = 4
)

// handshake negotiates the protocol version and reads the server's capabilities.
// Since 2026-07-28 requests are independent, and server/discover returns them; a
// server that does not support it gets the handshake of the legacy protocol.
// Version is empty if unknown.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
func (c *Conn) handshake(ctx context.Context, version string) error {
	if _, old := c.link.(*sseLink); old || version != "" && !mcp.IsModernProtocol(version) {
		return c.begin(c.initialize(ctx, cmp.Or(version, mcp.LATEST_LEGACY_PROTOCOL_VERSION)))(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	probed := make(chan probe, 1)
	if !c.spawn(func() { probed <- c.discover(ctx, cmp.Or(version, mcp.LATEST_PROTOCOL_VERSION)) }) {
		return c.Err()
	}
	timer := time.NewTimer(min(probePatience, c.server.startTimeout()/probeShare))
	defer timer.Stop()
	var asked chan greeting // the response to the legacy handshake; nil before it is sent
	var refused error       // of the probe
	for {
		select {
		case p := <-probed:
			switch {
			case p.err == nil:
				c.take(p.info)
				return nil
			case p.older == "" || ctx.Err() != nil:
				return p.err
			case asked == nil:
				return c.begin(c.initialize(ctx, p.older))(ctx)
			}
			probed, refused = nil, p.err
		case <-timer.C:
			asked = make(chan greeting, 1)
			c.spawn(func() {
				info, err := c.initialize(ctx, mcp.LATEST_LEGACY_PROTOCOL_VERSION)
				asked <- greeting{info, err}
			})
		case g := <-asked:
			if g.err != nil && refused == nil && ctx.Err() == nil && c.ctx.Err() == nil {
				asked = nil // only the probe is left
				continue
			}
			return c.begin(g.info, g.err)(ctx)
		case <-ctx.Done():
			return c.wrap(ctx.Err())
		case <-c.ctx.Done():
			return c.Err()
		}
	}
}

// greeting is the response to the legacy handshake.
type greeting struct {
	info Info
	err  error
}

// probe is the result of a probe for the modern protocol. Without it, older is the
// version to try; empty if that would not help.
type probe struct {
	info  Info
	older string
	err   error
}

// take sets the negotiated version and what the server is.
func (c *Conn) take(info Info) {
	c.protocol.Store(info.Protocol)
	c.info = info
}

// begin returns what ends the legacy handshake, given the response.
func (c *Conn) begin(info Info, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		c.take(info)
		return c.wrap(c.sendNotification(ctx, mcp.MethodNotificationInitialized, nil))
	}
}

// discover reads the capabilities of a server of the modern protocol.
func (c *Conn) discover(ctx context.Context, version string) probe {
	for again := true; ; again = false {
		if ctx.Err() != nil { // the legacy handshake has won
			return probe{err: c.wrap(ctx.Err())}
		}
		c.protocol.Store(version)
		text, err := c.do(ctx, mcp.MethodServerDiscover, nil)
		if err == nil {
			var info Info
			if info, err = discovered(version, text); err == nil {
				return probe{info: info}
			}
		}
		supported := supportedBy(err)
		version = mcp.NegotiateMutuallySupportedVersion(supported)
		switch {
		case again && mcp.IsModernProtocol(version): // possibly the one that was just rejected
			continue
		case len(supported) > 0 && version == "":
			return probe{err: c.wrap(fmt.Errorf("unsupported protocol versions %s; supported are %s", clip(cleanLine(strings.Join(supported, ", ")), 200), strings.Join(mcp.ValidProtocolVersions, ", ")))}
		case errors.Is(err, ErrSignIn), errors.Is(err, errMessageTooLong), c.ctx.Err() != nil:
			return probe{err: err}
		case version == "" || mcp.IsModernProtocol(version):
			version = mcp.LATEST_LEGACY_PROTOCOL_VERSION
		}
		return probe{older: version, err: err}
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

// discovered decodes the result of server/discover. Some legacy servers answer {}
// to unknown methods.
func discovered(version string, text json.RawMessage) (Info, error) {
	var r mcp.DiscoverResult
	if err := json.Unmarshal(text, &r); err != nil || !slices.ContainsFunc(r.SupportedVersions, mcp.IsModernProtocol) {
		return Info{}, errors.New("the response to server/discover lists no modern protocol version")
	}
	var server mcp.Implementation
	if s := r.GetResultMeta().ServerInfo(); s != nil {
		server = *s
	}
	return newInfo(version, server, r.Capabilities, r.Instructions), nil
}

// initialize asks for the legacy protocol.
func (c *Conn) initialize(ctx context.Context, version string) (Info, error) {
	c.protocol.Store("")
	text, err := c.do(ctx, mcp.MethodInitialize, fields{
		"protocolVersion": version, "clientInfo": c.about[mcp.MetaKeyClientInfo], "capabilities": c.about[mcp.MetaKeyClientCapabilities],
	})
	if status := (*statusError)(nil); errors.As(err, &status) && status.code/100 == 4 && !errors.Is(err, ErrSignIn) {
		return Info{}, fmt.Errorf("%w: %w", errNotStreamable, err)
	}
	if err != nil {
		return Info{}, err
	}
	var r mcp.InitializeResult
	if err := json.Unmarshal(text, &r); err != nil {
		return Info{}, c.wrap(fmt.Errorf("invalid response to the handshake: %w", err))
	}
	if !mcp.IsValidProtocolVersion(r.ProtocolVersion) {
		return Info{}, c.wrap(fmt.Errorf("unsupported protocol version %.40q; supported are %s", r.ProtocolVersion, strings.Join(mcp.ValidProtocolVersions, ", ")))
	}
	return newInfo(r.ProtocolVersion, r.ServerInfo, r.Capabilities, r.Instructions), nil
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
