package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/seed-009c0928/agent/mcp"
)

func Example() {
	s := server.NewMCPServer("weather", "1.0")
	s.AddTool(mcpgo.NewTool("forecast", mcpgo.WithDescription("Tells the weather.")), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText("Sunny."), nil
	})
	web := httptest.NewServer(server.NewStreamableHTTPServer(s))
	defer web.Close()

	ctx := context.Background()
	conn, err := mcp.Connect(ctx, "weather", mcp.Server{URL: web.URL}, mcp.ConnectOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	tools, err := conn.Tools(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := conn.Call(ctx, tools[0], json.RawMessage(`{}`), mcp.Caller{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(conn.Info().Name, mcp.ToolName("weather", tools[0].Name), res.Text())
	// Output: weather weather__forecast Sunny.
}
