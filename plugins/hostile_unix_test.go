//go:build !windows

package plugins_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// servePlugin is the main function of the plugins of these tests: a working one
// in the mode "good", and faulty ones in the others.
func servePlugin(mode string) {
	p := sdk.Plugin{Name: mode, Version: "1.0.0"}
	p.Name, mode, _ = strings.Cut(mode, ":")
	socket := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	switch mode {
	case "early stdout":
		fmt.Println("Loading the weather…")
	case "early flood":
		fmt.Print(strings.Repeat("x", 1<<20))
		forever()
	case "hang":
		forever()
	case "exit":
		fmt.Fprintln(os.Stderr, "the moon is full")
		os.Exit(3)
	case "wrong version":
		fmt.Printf("1|7|unix|%s|grpc|\n", socket)
		forever()
	case "net/rpc":
		fmt.Printf("1|1|unix|%s|netrpc|\n", socket)
		forever()
	case "bogus socket":
		l, err := net.Listen("unix", socket)
		if err != nil {
			os.Exit(1)
		}
		fmt.Printf("1|1|unix|%s|grpc|\n", l.Addr())
		forever()
	case "no socket":
		fmt.Printf("1|1|unix|%s|grpc|\n", socket)
		forever()
	case "foreign socket":
		fmt.Println("1|1|unix|/var/run/docker.sock|grpc|")
		forever()
	case "climbing socket":
		fmt.Printf("1|1|unix|%s/../../elsewhere|grpc|\n", filepath.Dir(socket))
		forever()
	case "tcp":
		fmt.Println("1|1|tcp|127.0.0.1:1|grpc|")
		forever()
	case "other name":
		p.Name = "somebody"
	case "other version":
		p.Version = "2.0.0"
	case "greedy":
		p.Manifest.Network = []string{"evil.example"}
	case "no object":
		serveRaw(p, func(d *toolproto.Description) { d.Tools[0].InputSchema = []byte(`{"type": "array"}`) })
	case "no schema":
		serveRaw(p, func(d *toolproto.Description) { d.Tools[0].InputSchema = []byte(`{"type"`) })
	case "twice":
		serveRaw(p, func(d *toolproto.Description) { d.Tools[1].Name = d.Tools[0].Name })
	case "shell access":
		serveRaw(p, func(d *toolproto.Description) {
			d.Tools[0].Access = []*toolproto.Access{{Scope: "shell-run", Resource: "ls"}}
		})
	case "adds context":
		serveRaw(p, func(d *toolproto.Description) { d.Contexts = []*toolproto.ContextSource{{Name: "all"}} })
	case "stock":
		serveStock(p)
	case "contexts":
		p.Extensions = append(p.Extensions,
			sdk.ContextSource("long", "Much text.", func(_ *sdk.Context, r sdk.ContextRequest) (string, error) {
				return fmt.Sprint(r.MaxTokens, " ", r.Input, strings.Repeat(" é", 1000)), nil
			}),
			sdk.ContextSource("broken", "No text.", func(*sdk.Context, sdk.ContextRequest) (string, error) {
				return "", errors.New("no ticket")
			}))
		p.Extensions[0], p.Extensions[1] = p.Extensions[1], p.Extensions[0]
	case "message too large":
		serveRaw(p, nil)
	case "author":
		p.Extensions = authorExtensions()
	case "dynamic":
		p.Dynamic = func(ctx context.Context, offer func(...sdk.Extension) error) {
			more := sdk.Tool("more", "More.", func(*sdk.Context, struct{}) (string, error) { return "more", nil })
			on := make(chan struct{})
			p.Extensions = nil
			toggle <- on
			for there := false; ; there = !there {
				var err error
				if there {
					err = offer(more)
				} else {
					err = offer()
				}
				if err != nil {
					panic(err)
				}
				select {
				case <-on:
				case <-ctx.Done():
					return
				}
			}
		}
	}
	sdk.Serve(p, goodTools(p.Name, mode)...)
}

// toggle passes a dynamic plugin's switch to its tool.
var toggle = make(chan chan struct{}, 1)

// serveRaw serves a plugin without go-plugin, with a modified description.
func serveRaw(p sdk.Plugin, change func(*toolproto.Description)) {
	server, err := sdk.NewServer(p, goodTools(p.Name, "")...)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("unix", filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "raw"))
	if err != nil {
		panic(err)
	}
	g := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
	toolproto.RegisterPluginServer(g, &rawServer{server, change})
	fmt.Printf("1|1|unix|%s|grpc\n", l.Addr())
	panic(g.Serve(l))
}

// serveStock serves a plugin with go-plugin's own server.
func serveStock(p sdk.Plugin) {
	server, err := sdk.NewServer(p, goodTools(p.Name, "")...)
	if err != nil {
		panic(err)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: toolproto.CookieKey, MagicCookieValue: toolproto.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{toolproto.Version: {"tools": &stock{server: server}}},
		GRPCServer:       plugin.DefaultGRPCServer,
	})
	os.Exit(0)
}

type stock struct {
	plugin.NetRPCUnsupportedPlugin
	server toolproto.PluginServer
}

func (s *stock) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	toolproto.RegisterPluginServer(g, s.server)
	return nil
}

func (*stock) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a host")
}

type rawServer struct {
	toolproto.PluginServer
	change func(*toolproto.Description)
}

func (s *rawServer) Describe(ctx context.Context, req *toolproto.DescribeRequest) (*toolproto.Description, error) {
	d, err := s.PluginServer.Describe(ctx, req)
	if err == nil && s.change != nil {
		s.change(d)
	}
	return d, err
}

func (s *rawServer) Session(stream toolproto.Plugin_SessionServer) error {
	if s.change != nil {
		return s.PluginServer.Session(stream)
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	return stream.Send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Output{Output: &toolproto.Output{Data: make([]byte, 65<<20)}}})
}

type misbehavior struct {
	What string   `json:"what"`
	Path string   `json:"path,omitempty"`
	URL  string   `json:"url,omitempty"`
	Dirs []string `json:"dirs,omitempty"`
}

func goodTools(name, mode string) []sdk.Extension {
	description := "Do something that a plugin should not do."
	if mode == "moody" { // a different one on each start
		description += fmt.Sprint(os.Getpid())
	}
	return []sdk.Extension{
		sdk.Tool("echo", "Say it again.", func(ctx *sdk.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			ctx.Progress(1, 2, "half")
			return in.Text, nil
		}, sdk.ReadOnly()),
		sdk.Tool("touch", "Say where.", func(_ *sdk.Context, in misbehavior) (string, error) { return in.Path, nil },
			sdk.Reads("/path"), sdk.Writes("/dirs"), sdk.Connects("/url"), sdk.ConnectsTo("api.example")),
		sdk.Tool("image", "Show a picture.", func(*sdk.Context, struct{}) (sdk.Result, error) {
			return sdk.Result{Text: "look", Images: []sdk.Image{{MediaType: "image/png", Data: []byte("\x89PNG")}}, Structured: map[string]int{"n": 1}}, nil
		}),
		sdk.Tool("wait", "Wait until it is cancelled.", func(ctx *sdk.Context, _ struct{}) (string, error) {
			ctx.Progress(0, 0, "waiting")
			<-ctx.Done()
			return "", ctx.Err()
		}),
		sdk.Tool("misbehave", description, misbehave, sdk.Timeout(20*time.Second)),
		sdk.Tool("switch", "Change the tools.", func(*sdk.Context, struct{}) (string, error) {
			on := <-toggle
			on <- struct{}{}
			toggle <- on
			return "", nil
		}),
		sdk.Command("greet", "NAME", "Greet somebody.", func(_ *sdk.Context, args string) (sdk.Reply, error) {
			if args == "" {
				return sdk.Reply{}, sdk.Errorf(sdk.Validation, "whom?")
			}
			return sdk.Reply{Prompt: "Say hello to " + args + "."}, nil
		}),
	}
}

func misbehave(ctx *sdk.Context, in misbehavior) (string, error) {
	switch in.What {
	case "panic":
		panic("boom in the handler")
	case "panic elsewhere":
		go func() { panic("boom in a goroutine") }()
		time.Sleep(time.Minute)
	case "exit":
		fmt.Fprintln(os.Stderr, "good bye")
		os.Exit(9)
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Minute)
	case "ignore cancel":
		time.Sleep(time.Minute)
	case "flood": // descriptor 1, bypassing the SDK
		n, err := syscall.Write(1, []byte(strings.Repeat("x", 1<<20)))
		return fmt.Sprint(n), err
	case "print":
		fmt.Println("a line on stdout")
		fmt.Fprintln(os.Stderr, "a line on stderr with "+os.Getenv("TEST_SECRET"))
	case "grandchild": // which keeps stdout open, in its own session
		cmd := exec.Command("sleep", "4321")
		cmd.Stdout, cmd.Stderr = os.NewFile(1, "stdout"), os.NewFile(2, "stderr")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return "", err
		}
		return fmt.Sprint(cmd.Process.Pid), nil
	case "large": // 100 MB
		return strings.Repeat("0123456789", 10_000_000), nil
	case "too large":
		for range 300 {
			if _, err := ctx.Write(make([]byte, 1<<20)); err != nil {
				return "", err
			}
		}
	case "endless progress":
		for i := 0; ctx.Err() == nil; i++ {
			ctx.Progress(float64(i), 0, "on and on")
		}
	case "ask":
		ok, err := ctx.Confirm("Shall I\x1b[2J?\n", "It is far.\u202e")
		return fmt.Sprint(ok, err), nil
	case "ask and die":
		go func() {
			time.Sleep(100 * time.Millisecond)
			os.Exit(4)
		}()
		ok, err := ctx.Confirm("Shall I?", "")
		return fmt.Sprint(ok, err), nil
	case "environment":
		return strings.Join(os.Environ(), "\n"), nil
	case "stdin":
		return os.Readlink("/proc/self/fd/0")
	case "pid":
		return fmt.Sprint(os.Getpid()), nil
	}
	return attempt(in)
}

// attempt tries something that a manifest must allow.
func attempt(in misbehavior) (string, error) {
	switch in.What {
	case "read":
		data, err := os.ReadFile(in.Path)
		return string(data), err
	case "write":
		return "written", os.WriteFile(in.Path, []byte("x"), 0o600)
	case "use memory":
		var all [][]byte
		for range 2048 {
			all = append(all, bytes.Repeat([]byte("x"), 1<<20))
		}
		return fmt.Sprint(len(all)), nil
	case "lack a thread": // as Go's runtime ends where the C library makes none
		fmt.Fprint(os.Stderr, "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\nrip    0x7f\n\ngs     0x0\n")
		os.Exit(2)
		return "", nil
	case "use processes":
		for range 900 {
			cmd := exec.Command("sleep", "60")
			if err := cmd.Start(); err != nil {
				return "", err
			}
			defer func() { _ = errors.Join(cmd.Process.Kill(), cmd.Wait()) }()
		}
		return "started", nil
	case "use the processor":
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		}
		return "used", nil
	case "connect":
		return get(nil, in.URL)
	case "connect by proxy": // even to this machine, which clients exempt
		proxy := os.Getenv("HTTP_PROXY")
		if proxy == "" {
			return "", errors.New("HTTP_PROXY is not set")
		}
		at, err := url.Parse(proxy)
		if err != nil {
			return "", err
		}
		return get(http.ProxyURL(at), in.URL)
	case "run and read": // programs that it starts are confined, too
		out, err := exec.Command("cat", in.Path).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return string(out), nil
	}
	return "", fmt.Errorf("unknown attempt %q", in.What)
}

func get(proxy func(*http.Request) (*url.URL, error), address string) (string, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{Proxy: proxy, DisableKeepAlives: true}}
	res, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, body)
	}
	return "connected", err
}

// forever hangs. (The runtime would report an empty select as a deadlock if
// nothing else runs.)
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}
