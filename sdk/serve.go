package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Serve serves the plugin until the host goes away, however that comes about,
// and does not return then: it ends the process. It is all that a plugin's
// main function does. Nothing may be printed to stdout before; afterwards what
// goes to stdout and stderr is in the plugin's log.
func Serve(p Plugin, extensions ...Extension) {
	s, err := NewServer(p, extensions...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Getenv(toolproto.CookieKey) == toolproto.CookieValue {
		go func() { // the host holds the other end, and nothing ever comes
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{toolproto.Version: {toolproto.Name: &service{server: s}}},
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(toolproto.MaxMessage), grpc.MaxSendMsgSize(toolproto.MaxMessage))...)
		},
	})
	s.Close()
	os.Exit(0)
}

// Handshake is the handshake of the protocol, for hosts.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: toolproto.CookieKey, MagicCookieValue: toolproto.CookieValue}
}

// service puts a server among go-plugin's services.
type service struct {
	plugin.NetRPCUnsupportedPlugin
	server *Server
}

var _ plugin.GRPCPlugin = (*service)(nil)

// GRPCServer implements [plugin.GRPCPlugin].
func (p *service) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	toolproto.RegisterPluginServer(s, p.server)
	return nil
}

// GRPCClient implements [plugin.GRPCPlugin].
func (*service) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin is no host")
}
