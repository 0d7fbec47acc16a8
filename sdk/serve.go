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

// Serve serves the plugin until the host goes away, however that comes about,
// and does not return then: it ends the process. It is all that a plugin's
// main function does. Nothing may be printed to stdout before; afterwards what
// is printed is in the plugin's log.
//
// It speaks the protocol of github.com/hashicorp/go-plugin without linking it:
// what a plugin needs of that is a line and one method.
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
		return fmt.Errorf("this is the plugin %s of agent: add it with 'agent plugins add'", p.Name)
	}
	version := fmt.Sprint(toolproto.Version)
	if known := os.Getenv("PLUGIN_PROTOCOL_VERSIONS"); known != "" && !strings.Contains(","+known+",", ","+version+",") {
		return fmt.Errorf("the plugin %s speaks version %s of the protocol, and its host %s", p.Name, version, known)
	}
	dir := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	if dir == "" {
		return errors.New("PLUGIN_UNIX_SOCKET_DIR is not set: the host is too old")
	}
	l, err := net.Listen("unix", filepath.Join(dir, "plugin.sock"))
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(toolproto.MaxMessage), grpc.MaxSendMsgSize(toolproto.MaxMessage))
	toolproto.RegisterPluginServer(g, s)
	end := sync.OnceFunc(func() { go g.Stop() }) // not before the answer to Shutdown is on its way
	g.RegisterService(controller(end), nil)
	signal.Ignore(os.Interrupt) // it is for the host, which ends the plugin
	go func() {                 // the host holds the other end, and nothing ever comes
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	fmt.Printf("1|%s|unix|%s|grpc|\n", version, l.Addr())
	os.Stdout = os.Stderr
	return g.Serve(l)
}

// controller is go-plugin's service by which a host ends a plugin.
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
