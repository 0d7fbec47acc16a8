package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Serve serves the plugin until the host shuts it down or exits, and then ends the
// process; it never returns. It is all that a plugin's main function does:
//
//	func main() {
//		sdk.Serve(sdk.Plugin{Name: "weather", Version: "1.0.0"}, forecast, alerts)
//	}
//
// Do not print to stdout before Serve, as its first line is the handshake with the
// host; whatever is printed later goes to the plugin's log. An invalid plugin, or
// one that was not started by a host, is an error on stderr and exit code 2.
//
// Serve implements the protocol of github.com/hashicorp/go-plugin without linking
// it, so that plugins stay small: the plugin's side is one line and one method.
func Serve(p Plugin, extensions ...Extension) {
	if err := serve(p, extensions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(0)
}

func serve(p Plugin, extensions []Extension) error {
	s, err := NewServer(p, extensions...)
	if err != nil {
		return err
	}
	defer s.Close()
	if os.Getenv(toolproto.CookieKey) != toolproto.CookieValue {
		return fmt.Errorf("%s is a plugin for agent: add it with 'agent plugins add'", p.Name)
	}
	version := fmt.Sprint(toolproto.Version)
	if known := os.Getenv("PLUGIN_PROTOCOL_VERSIONS"); known != "" && !strings.Contains(","+known+",", ","+version+",") {
		return fmt.Errorf("plugin %s uses protocol version %s, its host %s", p.Name, version, known)
	}
	dir := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	if dir == "" {
		return errors.New("PLUGIN_UNIX_SOCKET_DIR is not set: the host is too old")
	}
	l, err := net.Listen("unix", filepath.Join(dir, "plugin.sock"))
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(toolproto.MaxMessage), grpc.MaxSendMsgSize(toolproto.MaxMessage),
		grpc.StaticStreamWindowSize(toolproto.Window), grpc.StaticConnWindowSize(toolproto.Window))
	toolproto.RegisterPluginServer(g, s)
	end := sync.OnceFunc(func() { go g.Stop() }) // in the background, so that Shutdown is answered
	g.RegisterService(controller(end), nil)
	signal.Ignore(os.Interrupt) // for the host, which ends the plugin
	go func() {                 // stdin carries no data; it ends with the host
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	fmt.Printf("1|%s|unix|%s|grpc|\n", version, l.Addr())
	os.Stdout = os.Stderr
	return g.Serve(l)
}

// controller is the go-plugin service with which a host ends a plugin.
func controller(end func()) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "plugin.GRPCController",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Shutdown",
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				if err := decode(&emptypb.Empty{}); err != nil {
					return nil, err
				}
				end()
				return &emptypb.Empty{}, nil
			},
		}},
	}
}
