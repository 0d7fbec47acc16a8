// Command plugin is what package bench installs to measure extensions: a plugin with
// one tool, which has the name of its file, and with an argument an MCP server on
// stdin and stdout.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/sdk"
)

// serverTools is the number of tools of the MCP server.
const serverTools = 10

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to return"`
}

func echo(_ *sdk.Context, in echoArgs) (string, error) { return "Echo: " + in.Text, nil }

func main() {
	if len(os.Args) > 1 {
		if err := serve(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "plugin:", err)
			os.Exit(1)
		}
		return
	}
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	sdk.Serve(sdk.Plugin{Name: name, Version: "1.0.0", Extensions: []sdk.Extension{
		sdk.Tool(name+"_echo", "Return the text.", echo, sdk.ReadOnly()),
	}})
}

type object = map[string]any

// serve answers what an agent asks to learn the tools of an MCP server.
func serve(name string) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var in struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		if err := json.Unmarshal(lines.Bytes(), &in); err != nil {
			return err
		}
		if in.ID == nil {
			continue
		}
		answer := object{"jsonrpc": "2.0", "id": in.ID}
		switch in.Method {
		case "initialize":
			answer["result"] = object{
				"protocolVersion": in.Params.ProtocolVersion, "capabilities": object{"tools": object{}},
				"serverInfo": object{"name": name, "version": "1.0.0"},
			}
		case "tools/list":
			answer["result"] = object{"tools": tools(name)}
		default:
			answer["error"] = object{"code": -32601, "message": "method not found"}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// tools describes the tools of the MCP server.
func tools(name string) (list []object) {
	text := object{"type": "string", "description": "what to work on"}
	for n := range serverTools {
		list = append(list, object{
			"name": fmt.Sprintf("tool_%d", n), "description": fmt.Sprintf("Does part %d of the work of %s, on a text, and returns the result.", n, name),
			"inputSchema": object{"type": "object", "properties": object{"text": text, "limit": object{"type": "integer"}}, "required": []string{"text"}},
		})
	}
	return list
}
