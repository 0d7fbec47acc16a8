package root

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// oddSchemas are tools whose schemas no service and no validator takes as they are.
var oddSchemas = map[string]string{
	"mail":  `{"type":"object","properties":{"to":{"type":"string","pattern":"^(?!\\.)[a-z.]+@[a-z.]+$"}},"required":["to"]}`,
	"union": `{"anyOf":[{"type":"object","properties":{"op":{"const":"add"}},"required":["op"]},{"type":"object","properties":{"op":{"const":"list"}},"required":["op"]}]}`,
	"ref":   `{"type":"object","properties":{"body":{"$ref":"#/components/Body"},"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
}

// mcpServer is the command mcpserver of the scripts: an MCP server over stdio.
// What the tool echo is said to do is the text of the file words, if there is
// one; each start is a line of the file starts. The variable MCP_FAIL makes it
// end at once.
func mcpServer() int {
	if f, err := os.OpenFile("starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, "start")
		f.Close()
	}
	if os.Getenv("MCP_FAIL") != "" {
		fmt.Fprintln(os.Stderr, "the key is missing")
		return 3
	}
	words := "Says it again."
	if text, err := os.ReadFile("words"); err == nil {
		words = strings.TrimSpace(string(text))
	}
	s := server.NewMCPServer("scripts", "1.2", server.WithToolCapabilities(true), server.WithPromptCapabilities(true), server.WithResourceCapabilities(true, true))
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription(words), mcp.WithString("text")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("echo: " + r.GetString("text", "")), nil
	})
	s.AddTool(mcp.NewTool("secret", mcp.WithDescription("Tells the key.")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("the key is " + os.Getenv("SCRIPT_API_KEY") + "; " + os.Getenv("OPENAI_API_KEY")), nil
	})
	if os.Getenv(tellerEnv) != "" {
		s.AddTool(mcp.NewTool("tell", mcp.WithDescription("Tells.")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(tell()), nil
		})
	}
	s.AddTool(mcp.NewTool("write", mcp.WithDescription("Makes a file."), mcp.WithString("path")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := os.WriteFile(r.GetString("path", ""), nil, 0o600); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText("written"), nil
	})
	for name, schema := range oddSchemas {
		if os.Getenv("MCP_ODD") != "" {
			s.AddTool(mcp.NewToolWithRawSchema(name, "Is odd.", []byte(schema)), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText(fmt.Sprint("got ", r.GetArguments())), nil
			})
		}
	}
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithPromptDescription("Greets somebody"), mcp.WithArgument("who", mcp.RequiredArgument())), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Please greet "+r.Params.Arguments["who"]+"."))}), nil
	})
	s.AddResource(mcp.NewResource("script://notes", "notes", mcp.WithMIMEType("text/plain")), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: "remember the bread"}}, nil
	})
	if err := server.ServeStdio(s); err != nil {
		return 1
	}
	return 0
}
