package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// growingServer is an MCP server over HTTP. It answers nothing until the gate is
// open.
func growingServer(t *testing.T, name string, gate <-chan struct{}) (*mcpserver.MCPServer, mcp.Configured) {
	t.Helper()
	s := mcpserver.NewMCPServer(name, "1", mcpserver.WithToolCapabilities(true))
	addTool(s, name+"_first")
	handler := mcpserver.NewStreamableHTTPServer(s)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-gate
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return s, mcp.Configured{Name: name, Server: mcp.Server{URL: web.URL}}
}

func addTool(s *mcpserver.MCPServer, name string) {
	s.AddTool(mcpgo.NewTool(name, mcpgo.WithDescription("Does "+name+".")), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText(name + " was called"), nil
	})
}

// awaitTools waits until a server is known to have so many tools.
func awaitTools(t *testing.T, host *mcp.Host, server string, n int) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for {
		if slices.ContainsFunc(host.Status(), func(st mcp.Status) bool { return st.Name == server && len(st.Tools) == n }) {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s does not get %d tools: %+v", server, n, host.Status())
		}
	}
}

// TestServersKeepThePrefix: a server that changes its list, and one that arrives
// late, change nothing in front of what was sent before; the model is told, and can
// call the new tools.
func TestServersKeepThePrefix(t *testing.T) {
	t.Parallel()
	for _, kind := range searchedBy {
		t.Run(kind.model, func(t *testing.T) {
			t.Parallel()
			open, late := make(chan struct{}), make(chan struct{})
			close(open)
			first, a1 := growingServer(t, "early", open)
			_, a2 := growingServer(t, "tardy", late)
			call := func(name string) modeltest.Turn {
				return modeltest.Turn{Calls: []modeltest.Call{{ID: "call_1", Name: "call_tool", Args: []string{fmt.Sprintf(`{"name":%q,"args":{}}`, name)}}}}
			}
			text := modeltest.Turn{Text: []string{"ok"}}
			find := modeltest.Turn{Calls: []modeltest.Call{{ID: "call_0", Name: model.ToolSearch, Args: []string{`{"query":"tardy_first"}`}}}}
			server := modeltest.New(kind.api, text, text, find, call("tardy__tardy_first"), text)
			p, err := kind.open(wire.Config{BaseURL: server.Serve(t), APIKey: "k", Model: kind.model})
			if err != nil {
				t.Fatal(err)
			}
			a, err := agent.Open(t.Context(), agent.Options{
				Dir: t.TempDir(), Permissions: permissions.Options{Mode: permissions.ModeBypass},
				MCP: agent.MCPOptions{Servers: []mcp.Configured{a1, a2}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: p})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			awaitTools(t, a.MCP(), "early", 1)
			submit := func(prompt string) {
				t.Helper()
				if _, err := s.Submit(t.Context(), core.TextInput(prompt)); err != nil {
					t.Fatal(err)
				}
			}
			submit("one")
			addTool(first, "early_second")
			awaitTools(t, a.MCP(), "early", 2)
			submit("two")
			close(late)
			awaitTools(t, a.MCP(), "tardy", 1)
			submit("three")
			checkSamePrefix(t, server.Requests())
			last := server.Requests()[4].Parsed
			for _, want := range []string{"New tools: early__early_second.", "New tools: tardy__tardy_first.", "tardy_first was called"} {
				all := last.Parts(model.RoleUser).Text()
				for _, r := range last.Results() {
					all += r.Content.Text()
				}
				if !strings.Contains(all, want) {
					t.Errorf("%q is not in %s", want, all)
				}
			}
		})
	}
}

func checkSamePrefix(t *testing.T, requests []*modeltest.Request) {
	t.Helper()
	if len(requests) != 5 {
		t.Fatalf("%d requests, want 5", len(requests))
	}
	var before []byte
	for i, r := range requests {
		body := moving.ReplaceAll(r.Body, nil)
		if !bytes.HasPrefix(body, before) {
			t.Errorf("request %d does not begin as the one before:\n%s\n%s", i, before, body)
		}
		before = bytes.TrimRight(body, "]}")
	}
}
