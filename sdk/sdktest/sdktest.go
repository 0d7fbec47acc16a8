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

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// timeout is the limit for every operation.
const timeout = 20 * time.Second

// Plugin is a running plugin.
type Plugin struct{ client toolproto.PluginClient }

// Start runs a plugin inside the test, through the whole protocol, and stops it at
// the end of the test.
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
		fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", toolproto.Version), "PLUGIN_UNIX_SOCKET_DIR="+dir)
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
	return &Plugin{toolproto.NewPluginClient(conn)}
}

// Describe returns the plugin's description of itself.
func (p *Plugin) Describe(t testing.TB) *toolproto.Description {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	d, err := p.client.Describe(ctx, &toolproto.DescribeRequest{HostVersion: "sdktest"})
	if err != nil {
		t.Fatalf("Describe: %v", err)
	}
	return d
}

// Result is the result of a call.
type Result struct {
	Code       sdk.Code        // empty = success
	Text       string          // live output and the result's text
	Structured json.RawMessage // nil = none
	Images     []sdk.Image
	Progress   []string // messages, in order
	Questions  []string // titles passed to Confirm, in order
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
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	call := &toolproto.Call{Id: "call", Tool: tool, Args: raw, Session: session(t)}
	res, err := p.converse(ctx, &toolproto.HostFrame{Frame: &toolproto.HostFrame_Call{Call: call}}, true, nil)
	if err != nil {
		t.Fatalf("call of %s: %v", tool, err)
	}
	return res
}

// Context asks a context source for the text that it adds to an input.
func (p *Plugin) Context(t testing.TB, source, input string, maxTokens int) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	req := &toolproto.ContextRequest{Source: source, Input: input, MaxTokens: int64(maxTokens), Session: session(t)}
	res, err := p.converse(ctx, &toolproto.HostFrame{Frame: &toolproto.HostFrame_Context{Context: req}}, false, nil)
	if err != nil {
		t.Fatalf("context source %s: %v", source, err)
	}
	return res
}

// Command runs a slash command.
func (p *Plugin) Command(t testing.TB, name, args string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	req := &toolproto.CommandRequest{Name: name, Args: args, Session: session(t)}
	res, err := p.converse(ctx, &toolproto.HostFrame{Frame: &toolproto.HostFrame_Command{Command: req}}, true, nil)
	if err != nil {
		t.Fatalf("command %s: %v", name, err)
	}
	return res
}

func session(t testing.TB) *toolproto.SessionInfo {
	return &toolproto.SessionInfo{Id: "sdktest", Workspace: t.TempDir()}
}

// converse opens a session and returns its result. Yes is the answer to Confirm;
// began, if not nil, is called when the session is open, with a function that
// cancels it.
func (p *Plugin) converse(ctx context.Context, first *toolproto.HostFrame, yes bool, began func(cancel func())) (res Result, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := p.client.Session(ctx)
	if err != nil {
		return res, err
	}
	if err := stream.Send(first); err != nil {
		return res, err
	}
	if began != nil {
		began(func() {
			_ = stream.Send(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Cancel{Cancel: &toolproto.Cancel{Reason: "test"}}})
		})
	}
	var parts []*toolproto.Part
	for {
		f, err := stream.Recv()
		if err != nil {
			return res, err
		}
		switch f := f.Frame.(type) {
		case *toolproto.PluginFrame_Progress:
			res.Progress = append(res.Progress, f.Progress.Message)
		case *toolproto.PluginFrame_Output:
			res.Text += string(f.Output.Data)
		case *toolproto.PluginFrame_Confirm:
			res.Questions = append(res.Questions, f.Confirm.Title)
			a := &toolproto.ConfirmAnswer{Id: f.Confirm.Id, Yes: yes}
			if err := stream.Send(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Confirm{Confirm: a}}); err != nil {
				return res, err
			}
		case *toolproto.PluginFrame_Part:
			if n := len(parts); n > 0 && parts[n-1].More {
				parts[n-1].Data, parts[n-1].More = append(parts[n-1].Data, f.Part.Data...), f.Part.More
			} else {
				parts = append(parts, f.Part)
			}
		case *toolproto.PluginFrame_Result:
			res.finish(parts, f.Result)
			return res, nil
		}
	}
}

func (r *Result) finish(parts []*toolproto.Part, last *toolproto.Result) {
	r.Code = sdk.Code(last.Code)
	for _, p := range parts {
		switch p.Kind {
		case toolproto.Part_IMAGE:
			r.Images = append(r.Images, sdk.Image{MediaType: p.MediaType, Data: p.Data})
		case toolproto.Part_STRUCTURED:
			r.Structured = p.Data
		default:
			r.Text += string(p.Data)
		}
	}
	r.Text += last.Text
	if len(last.Structured) > 0 {
		r.Structured = last.Structured
	}
}
