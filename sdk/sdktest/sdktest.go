package sdktest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-009c0928/agent/internal/plugintest"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// timeout is the limit for every operation.
const timeout = plugintest.Timeout

// Plugin is a running plugin.
type Plugin struct {
	// Workspace is the directory of the calls; if empty, each has a new one.
	Workspace string

	// Settings are the user's, for the calls that follow.
	Settings map[string]any
	// Answers are the values of the fields of forms by name; "answer" for Choose and
	// AskText. Without any, the user declines.
	Answers map[string]any
	// Model answers AskModel; nil refuses.
	Model func(sdk.Prompt) (string, error)

	host *plugintest.Driver
}

// Start runs a plugin inside the test, through the whole protocol, and stops it at
// the end of the test. Its data directory is that of the environment variable
// PLUGIN_DATA_DIR.
func Start(t testing.TB, p sdk.Plugin, extensions ...sdk.Extension) *Plugin {
	t.Helper()
	server, err := sdk.NewServer(p, extensions...)
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(grpc.MaxRecvMsgSize(toolproto.MaxMessage), grpc.MaxSendMsgSize(toolproto.MaxMessage))
	toolproto.RegisterPluginServer(g, server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(listener)
	}()
	t.Cleanup(func() {
		g.Stop()
		<-done
		server.Close()
	})
	return connect(t, func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
}

// StartBinary starts a plugin's program as an agent would, and stops it at the end
// of the test. If the test fails, its stderr is logged.
func StartBinary(t testing.TB, program string, args ...string) *Plugin {
	t.Helper()
	dir, err := os.MkdirTemp("", "sdk")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), toolproto.CookieKey+"="+toolproto.CookieValue,
		fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", toolproto.Version), "PLUGIN_UNIX_SOCKET_DIR="+dir, "PLUGIN_DATA_DIR="+t.TempDir())
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the plugin: %v", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // tells the plugin that its host is gone
		kill := time.AfterFunc(timeout, func() {
			t.Errorf("the plugin did not exit within %s after its stdin was closed", timeout)
			_ = cmd.Process.Kill()
		})
		_ = cmd.Wait()
		kill.Stop()
		_ = os.RemoveAll(dir)
		if t.Failed() && stderr.Len() > 0 {
			t.Logf("the plugin's stderr:\n%s", stderr)
		}
	})
	network, address, err := handshake(stdout)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
}

// handshake reads the line with the address of a plugin.
func handshake(stdout io.Reader) (network, address string, err error) {
	type answer struct {
		line string
		err  error
	}
	first := make(chan answer, 1)
	go func() { // drains the output until the process ends
		r := bufio.NewReader(stdout)
		line, err := r.ReadString('\n')
		first <- answer{line, err}
		_, _ = io.Copy(io.Discard, r)
	}()
	select {
	case a := <-first:
		fields := strings.Split(strings.TrimSpace(a.line), "|")
		if len(fields) < 5 || fields[0] != "1" || fields[1] != fmt.Sprint(toolproto.Version) || fields[4] != "grpc" {
			return "", "", fmt.Errorf("the plugin's first line is %q (%v), expected 1|%d|unix|SOCKET|grpc|", a.line, a.err, toolproto.Version)
		}
		return fields[2], fields[3], nil
	case <-time.After(timeout):
		return "", "", fmt.Errorf("the plugin printed no handshake line within %s", timeout)
	}
}

func connect(t testing.TB, dial func(context.Context, string) (net.Conn, error)) *Plugin {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:plugin", grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(toolproto.MaxMessage), grpc.MaxCallSendMsgSize(toolproto.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := &Plugin{host: &plugintest.Driver{Client: toolproto.NewPluginClient(conn)}}
	p.Describe(t) // as an agent does first
	return p
}

// Describe returns the plugin's description of itself.
func (p *Plugin) Describe(t testing.TB) *toolproto.Description {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	d, err := p.host.Describe(ctx)
	if err != nil {
		t.Fatalf("Describe: %v", err)
	}
	return d
}

// Result is the result of a call.
type Result struct {
	Code       sdk.Code        // empty = success
	Text       string          // live output and the result's text
	Prompt     bool            // of a command: the text is for the model
	Structured json.RawMessage // nil = none
	Images     []sdk.Image
	Progress   []string // messages, in order
	Questions  []string // titles passed to Confirm and the like, in order
}

// Decode decodes the structured result.
func (r Result) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Structured, v); err != nil {
		t.Fatalf("the structured result %q: %v", r.Structured, err)
	}
}

// Call calls a tool with arguments that encoding/json can encode, or a
// json.RawMessage. Confirm is answered with yes.
func (p *Plugin) Call(t testing.TB, tool string, args any) Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return p.run(t, plugintest.Sample{Tool: tool, Args: raw})
}

// Context asks a context source for the text that it adds to an input.
func (p *Plugin) Context(t testing.TB, source, input string, maxTokens int) Result {
	t.Helper()
	return p.run(t, plugintest.Sample{Context: source, Input: input, MaxTokens: maxTokens})
}

// Command runs a slash command.
func (p *Plugin) Command(t testing.TB, name, args string) Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return p.run(t, plugintest.Sample{Command: name, Args: raw})
}

// Hook runs a hook. The structured result is its reply.
func (p *Plugin) Hook(t testing.TB, name string, event sdk.HookEvent) Result {
	t.Helper()
	input, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return p.run(t, plugintest.Sample{Hook: name, Event: input})
}

func (p *Plugin) run(t testing.TB, s plugintest.Sample) Result {
	t.Helper()
	s.Answers, s.Model = p.Answers, p.Model
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	res, err := p.driver(t).Run(ctx, s)
	if err != nil {
		t.Fatalf("%s%s%s%s: %v", s.Tool, s.Context, s.Command, s.Hook, err)
	}
	return Result(res)
}

// driver returns the host of the plugin, with what the test has set.
func (p *Plugin) driver(t testing.TB) *plugintest.Driver {
	d := *p.host
	if d.Workspace = p.Workspace; d.Workspace == "" {
		d.Workspace = t.TempDir()
	}
	d.Settings = p.Settings
	return &d
}
