package mcp

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	protocol "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp"
)

// world is the process around a command, with an empty home directory.
type world struct {
	*cmdutil.IO
	out, err *bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AGENT_HOME", "")
	w := &world{out: new(bytes.Buffer), err: new(bytes.Buffer)}
	w.IO = &cmdutil.IO{In: strings.NewReader(""), Out: w.out, Err: w.err, Env: os.Getenv, Cwd: t.TempDir()}
	return w
}

func (w *world) options() serverOptions { return serverOptions{IO: w.IO} }

// printed returns what was printed since the last call.
func (w *world) printed() string {
	text := w.out.String() + w.err.String()
	w.out.Reset()
	w.err.Reset()
	return text
}

// TestChangedTool denies and accepts the change of a tool's definition.
func TestChangedTool(t *testing.T) {
	w := newWorld(t)
	srv := server.NewMCPServer("near", "1", server.WithToolCapabilities(true))
	offer := func(description string) {
		srv.SetTools(server.ServerTool{
			Tool:    protocol.NewTool("echo", protocol.WithDescription(description)),
			Handler: func(context.Context, protocol.CallToolRequest) (*protocol.CallToolResult, error) { return nil, nil },
		})
	}
	offer("Says it again.")
	web := httptest.NewServer(server.NewStreamableHTTPServer(srv))
	t.Cleanup(web.Close)

	add := &addOptions{serverOptions: w.options(), scope: setup.ScopeUser}
	if err := add.run(t.Context(), "near", []string{web.URL + "/mcp"}); err != nil {
		t.Fatal(err)
	}
	if got := w.printed(); !strings.Contains(got, "Added MCP server near to ") || !strings.Contains(got, "It has 1 tool: echo.") {
		t.Fatalf("add printed %s", got)
	}

	offer("Says it twice.")
	w.InTTY, w.OutTTY, w.ErrTTY = true, true, true
	for _, test := range []struct{ answer, printed, status string }{
		{"n\n", "Changes not accepted; the old definitions stay in use.\n", "changed"},
		{"", "Changes not accepted; the old definitions stay in use.\n", "changed"},
		{"y\n", "Changes accepted.\n", "ready"},
	} {
		w.In = strings.NewReader(test.answer)
		if err := (&testOptions{serverOptions: w.options()}).run(t.Context(), "near"); err != nil {
			t.Fatal(err)
		}
		got := w.printed()
		if !strings.Contains(got, test.printed) || !strings.Contains(got, "+ Says it twice.") || !strings.Contains(got, "Accept 1 changed tool? [y/N]") || strings.Contains(got, "eleted") {
			t.Errorf("test, answered %q, printed %s", test.answer, got)
		}
		if err := (&listOptions{serverOptions: w.options()}).run(); err != nil {
			t.Fatal(err)
		}
		if got := w.printed(); !strings.Contains(got, " "+test.status+" ") {
			t.Errorf("list, after the answer %q, printed %s", test.answer, got)
		}
	}
	if err := (&testOptions{serverOptions: w.options()}).run(t.Context(), "near"); err != nil {
		t.Fatal(err)
	}
	if got := w.printed(); strings.Contains(got, "Changes") {
		t.Errorf("test without changes printed %s", got)
	}
}

// TestNotFound checks the exit code and the text of errors for unknown servers.
func TestNotFound(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	missing := func(want string) {
		t.Helper()
		for name, run := range map[string]func() error{
			"get":     func() error { return (&getOptions{serverOptions: w.options()}).run("nix") },
			"remove":  func() error { return (&removeOptions{serverOptions: w.options()}).run(ctx, "nix") },
			"enable":  func() error { return (&enableOptions{w.options()}).run(ctx, "nix") },
			"disable": func() error { return (&disableOptions{w.options()}).run(ctx, "nix") },
			"test":    func() error { return (&testOptions{serverOptions: w.options()}).run(ctx, "nix") },
			"login":   func() error { return (&loginOptions{serverOptions: w.options()}).run(ctx, "nix") },
			"logout":  func() error { return (&logoutOptions{w.options()}).run(ctx, "nix") },
		} {
			if err := run(); cmdutil.ExitCode(err) != cmdutil.ExitError || err.Error() != want {
				t.Errorf("%s: exit code %d, error %v", name, cmdutil.ExitCode(err), err)
			}
		}
	}
	missing(`no MCP server "nix": none are configured (see agent mcp add)`)
	add := &addOptions{serverOptions: w.options(), scope: setup.ScopeProject, noConnect: true}
	if err := add.run(ctx, "near", []string{"cat", "-u"}); err != nil {
		t.Fatal(err)
	}
	missing(`no MCP server "nix": expected one of near`)

	// A server of another settings file is known, and cannot be removed.
	remove := &removeOptions{serverOptions: w.options()}
	remove.flags.Sets = []string{`mcp.servers={"far": {"command": "cat"}}`}
	if err := remove.run(ctx, "far"); err == nil || !strings.Contains(err.Error(), `MCP server "far" is neither in your settings nor in this directory's .mcp.json`) {
		t.Errorf("remove: %v", err)
	}
	remove = &removeOptions{serverOptions: w.options(), scope: setup.ScopeUser}
	if err := remove.run(ctx, "near"); err == nil || err.Error() != `no MCP server "near" in scope user` {
		t.Errorf("remove: %v", err)
	}
	remove = &removeOptions{serverOptions: w.options()}
	if err := remove.run(ctx, "near"); err != nil {
		t.Error(err)
	}
	missing(`no MCP server "nix": none are configured (see agent mcp add)`)
}

func TestParseServer(t *testing.T) {
	o := &addOptions{env: []string{"A=b=c"}, headers: []string{" X-Key : v:w "}}
	o.settings.Type = mcp.TransportSSE
	server, err := o.parse("far", []string{"https://example.com/sse"})
	if err != nil || server.URL != "https://example.com/sse" || server.Headers["X-Key"] != "v:w" {
		t.Errorf("parse = %+v, %v", server, err)
	}
	o.settings.Type = ""
	o.headers = nil
	server, err = o.parse("near", []string{"https://example.com", "-x"})
	if err != nil || server.Command != "https://example.com" || len(server.Args) != 1 || server.Env["A"] != "b=c" {
		t.Errorf("parse = %+v, %v", server, err)
	}
	o.headers = []string{"secret-without-a-name"}
	if _, err := o.parse("far", []string{"https://example.com"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("parse: %v", err)
	}
}
