package conformancetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/mcp/internal/conformancetest"
	"github.com/seed-009c0928/agent/mcp/oauth"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestMain is also the client that the suite starts.
func TestMain(m *testing.M) {
	if scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO"); scenario != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
		defer cancel()
		if err := runClient(ctx, scenario, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestClient runs the suite against package mcp, with the sign-in.
func TestClient(t *testing.T) {
	for _, revision := range conformancetest.Revisions {
		t.Run(revision, func(t *testing.T) {
			conformancetest.Run(t, "client", revision, "--command", os.Args[0])
		})
	}
}

// given is the suite's input to the client of a scenario.
var given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ToolCalls    []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

// browser is a user whose browser follows every redirect.
type browser struct{}

func (browser) Visit(ctx context.Context, page string) (string, error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return "", err
}

// acceptAll accepts every form, with its defaults, and confirms every question.
func acceptAll(_ context.Context, q core.Question) (core.Answer, error) {
	a := core.Answer{Choice: core.ChoiceYes, Values: json.RawMessage(`{}`)}
	if strings.Contains(string(q.Schema), `"confirmed"`) {
		a.Values = json.RawMessage(`{"confirmed": true}`)
	}
	return a, nil
}

// runClient runs package mcp as the client of a scenario.
func runClient(ctx context.Context, scenario, address string) error {
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	signIn := agent.MCPSignIn{Store: oauth.NewStore(dir, nil), Browser: browser{}, ClientMetadataURL: "https://conformance-test.local/client-metadata.json"}
	server := mcp.Server{URL: address, OAuth: mcp.OAuth{ClientID: given.ClientID, ClientSecret: given.ClientSecret}}
	conn, err := mcp.Connect(ctx, "suite", server, mcp.ConnectOptions{Authorize: signIn.Authorizer(), ClientName: "agent", ClientVersion: "1"})
	if err != nil {
		return err
	}
	defer conn.Close()
	tools, err := conn.Tools(ctx)
	if tools == nil && err != nil {
		return err
	}
	c := client{conn, tools}
	switch scenario {
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
		return nil
	case "json-schema-2020-12-preservation":
		return c.echoSchema(ctx)
	case "http-standard-headers":
		return c.everything(ctx)
	case "http-custom-headers":
		for _, call := range given.ToolCalls {
			if err := c.call(ctx, call.Name, call.Arguments); err != nil {
				return err
			}
		}
		return nil
	case "http-invalid-tool-headers":
		for _, tool := range tools {
			_ = c.call(ctx, tool.Name, json.RawMessage(`{"region": "us"}`)) // the suite checks the requests
		}
		return nil
	case "sep-2322-client-request-state":
		for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state", "test_mrtr_no_result_type"} {
			_ = c.call(ctx, name, json.RawMessage(`{}`))
		}
		return nil
	case "tools_call":
		return c.call(ctx, "add_numbers", json.RawMessage(`{"a": 2, "b": 3}`))
	}
	for _, tool := range tools {
		if err := c.call(ctx, tool.Name, json.RawMessage(`{}`)); err != nil {
			return err
		}
	}
	return nil
}

type client struct {
	conn  *mcp.Conn
	tools []mcp.ToolInfo
}

func (c client) call(ctx context.Context, name string, args json.RawMessage) error {
	tool := mcp.ToolInfo{Name: name}
	for _, t := range c.tools {
		if t.Name == name {
			tool = t
		}
	}
	_, err := c.conn.Call(ctx, tool, args, mcp.Caller{Ask: acceptAll})
	return err
}

// echoSchema sends a tool's schema back, byte for byte.
func (c client) echoSchema(ctx context.Context) error {
	for _, t := range c.tools {
		if t.Name == "json_schema_2020_12_tool" {
			args, err := json.Marshal(map[string]json.RawMessage{"schema": t.Schema})
			if err != nil {
				return err
			}
			return c.call(ctx, "json_schema_echo", args)
		}
	}
	return fmt.Errorf("no tool with a schema among %v", c.tools)
}

// everything calls all tools, reads all resources and gets all prompts.
func (c client) everything(ctx context.Context) error {
	for _, t := range c.tools {
		_ = c.call(ctx, t.Name, json.RawMessage(`{}`))
	}
	resources, err := c.conn.Resources(ctx)
	if err != nil {
		return err
	}
	for _, r := range resources {
		if _, err := c.conn.ReadResource(ctx, r.URI, mcp.Caller{Ask: acceptAll}); err != nil {
			return err
		}
	}
	prompts, err := c.conn.Prompts(ctx)
	if err != nil {
		return err
	}
	for _, p := range prompts {
		if _, err := c.conn.GetPrompt(ctx, p.Name, nil, mcp.Caller{Ask: acceptAll}); err != nil {
			return err
		}
	}
	return nil
}
