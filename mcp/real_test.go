package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/mcp"
)

// modulesEnv is the variable with the node_modules directory of third-party
// servers: @modelcontextprotocol/server-everything, server-filesystem and
// server-memory.
const modulesEnv = "AGENT_TEST_NODE_MODULES"

// realServer returns the command of a server from npm.
func realServer(t *testing.T, name string) []string {
	t.Helper()
	modules := os.Getenv(modulesEnv)
	if modules == "" {
		t.Skipf("%s is not set to a node_modules directory with the MCP servers", modulesEnv)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	script := filepath.Join(modules, "@modelcontextprotocol", name, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("%s: %v", modulesEnv, err)
	}
	return []string{node, script}
}

// sampleValue returns a value that matches a simple schema.
func sampleValue(s map[string]any) any {
	if d, ok := s["default"]; ok {
		return d
	}
	if e, ok := s["enum"].([]any); ok && len(e) > 0 {
		return e[0]
	}
	switch s["type"] {
	case "number", "integer":
		return 2
	case "boolean":
		return true
	case "array":
		item, _ := s["items"].(map[string]any)
		return []any{sampleValue(item)}
	case "object":
		properties, _ := s["properties"].(map[string]any)
		out := map[string]any{}
		required, _ := s["required"].([]any)
		for name, p := range properties {
			if p, ok := p.(map[string]any); ok && slices.Contains(required, any(name)) {
				out[name] = sampleValue(p)
			}
		}
		return out
	}
	return "sample"
}

// exercise calls all tools, reads all resources and fills in all prompts of a
// server. Args are the arguments of tools that need specific ones; those named in
// fails may fail.
func exercise(t *testing.T, h *mcp.Host, args map[string]string, fails ...string) {
	t.Helper()
	st := refreshed(t, h)
	if len(st.Tools) == 0 || len(st.Skipped) > 0 {
		t.Fatalf("%d tools; left out: %v", len(st.Tools), st.Skipped)
	}
	var asked []core.Question
	for _, info := range st.Tools {
		text, ok := args[info.Name]
		if !ok {
			var schema map[string]any
			if err := json.Unmarshal(info.Schema, &schema); err != nil {
				t.Fatal(err)
			}
			text = string(jsonrpc.Encode(sampleValue(schema)))
		}
		res := runTool(t, toolNamed(t, h, info.Name), text, core.Answer{Choice: core.ChoiceYes, Values: json.RawMessage(`{"name":"Ada","check":true}`)}, &asked)
		if res.Code != "" && !slices.Contains(fails, info.Name) {
			t.Errorf("%s %s: %s %s", info.Name, text, res.Code, mcp.CallResult{Content: res.Content}.Text())
		}
	}
	resources := listedResources(t, h)
	if st.Info.Resources && len(resources) == 0 {
		t.Error("it has no resources")
	}
	for _, uri := range resources {
		if res, err := h.ReadResource(t.Context(), "test", uri, mcp.Caller{}); err != nil || len(res.Content) == 0 {
			t.Errorf("%s: %+v, %v", uri, res, err)
		}
	}
	for _, p := range st.Prompts {
		values := map[string]string{}
		for _, a := range p.Arguments {
			values[a.Name] = "1"
			if choices, err := h.CompletePrompt(t.Context(), "test", p.Name, a.Name, "", values); err == nil && len(choices) > 0 {
				values[a.Name] = choices[0]
			}
		}
		if p.Name == "resource-prompt" {
			values = map[string]string{"resourceType": "Text", "resourceId": "1"}
		}
		if res, err := h.GetPrompt(t.Context(), "test", p.Name, values, mcp.Caller{}); err != nil || len(res.Content) == 0 {
			t.Errorf("prompt %s %v: %+v, %v", p.Name, values, res, err)
		}
	}
	t.Logf("%s: %d tools, %d resources, %d prompts, %d questions", st.Info.Name, len(st.Tools), len(resources), len(st.Prompts), len(asked))
}

// listedResources returns the URIs listed by the resource tool, with templates
// filled in.
func listedResources(t *testing.T, h *mcp.Host) []string {
	t.Helper()
	tools, err := h.Toolsets()[1].Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, tool := range tools {
		_, list, _ := strings.Cut(text(runTool(t, tool, `{"server":"test"}`, core.Answer{}, nil)), "\n")
		for line := range strings.Lines(list) {
			uri, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			uris = append(uris, strings.ReplaceAll(uri, "{resourceId}", "1"))
		}
	}
	return uris
}

// everything are arguments for tools of server-everything.
var everything = map[string]string{
	"echo":                           `{"message":"hi"}`,
	"trigger-long-running-operation": `{"duration":0.2,"steps":2}`,
	"gzip-file-as-resource":          `{"name":"x.gz","data":"data:text/plain,hello","outputType":"resource"}`,
	"get-resource-reference":         `{"resourceType":"Text","resourceId":1}`,
	"simulate-research-query":        `{"topic":"go"}`,
	"trigger-url-elicitation":        `{"url":"https://example.com/x"}`,
}

func TestServerEverything(t *testing.T) {
	command := realServer(t, "server-everything")
	t.Run("stdio", func(t *testing.T) {
		exercise(t, newHost(t, mcp.Server{Command: command[0], Args: command[1:], StartTimeout: 60_000, Sampling: mcp.Sampling{Enabled: true}}, t.TempDir()), everything)
	})
	for mode, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		t.Run(mode, func(t *testing.T) {
			port := freePort(t)
			cmd := exec.Command(command[0], append(slices.Clone(command[1:]), mode)...)
			cmd.Env = append(os.Environ(), "PORT="+port)
			cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			await(t, port)
			s := mcp.Server{URL: "http://localhost:" + port + path, StartTimeout: 60_000, Sampling: mcp.Sampling{Enabled: true}}
			if mode == "sse" {
				s.Type = mcp.TransportSSE
			}
			exercise(t, newHost(t, s, t.TempDir()), everything)
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// await waits until something listens on a port.
func await(t *testing.T, port string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "localhost:"+port)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("nothing listens on port %s: %v", port, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestServerFilesystem(t *testing.T) {
	command := realServer(t, "server-filesystem")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf(`{"path":%q}`, file)
	here := fmt.Sprintf(`{"path":%q}`, dir)
	exercise(t, newHost(t, mcp.Server{Command: command[0], Args: append(command[1:], dir), StartTimeout: 60_000}, t.TempDir()), map[string]string{
		"read_file": path, "read_text_file": path, "read_media_file": path, "get_file_info": path,
		"read_multiple_files": fmt.Sprintf(`{"paths":[%q]}`, file),
		"write_file":          fmt.Sprintf(`{"path":%q,"content":"new"}`, filepath.Join(dir, "b.txt")),
		"edit_file":           fmt.Sprintf(`{"path":%q,"edits":[{"oldText":"one","newText":"three"}]}`, file),
		"create_directory":    fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "sub")),
		"move_file":           fmt.Sprintf(`{"source":%q,"destination":%q}`, filepath.Join(dir, "b.txt"), filepath.Join(dir, "c.txt")),
		"search_files":        fmt.Sprintf(`{"path":%q,"pattern":"*"}`, dir),
		"list_directory":      here, "list_directory_with_sizes": here, "directory_tree": here,
	})
	if data, err := os.ReadFile(filepath.Join(dir, "c.txt")); err != nil || string(data) != "new" {
		t.Errorf("the moved file: %q, %v", data, err)
	}
}

func TestServerMemory(t *testing.T) {
	command := realServer(t, "server-memory")
	entity := `{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`
	exercise(t, newHost(t, mcp.Server{Command: command[0], Args: command[1:], StartTimeout: 60_000, Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}}, t.TempDir()), map[string]string{
		"create_entities":     entity,
		"create_relations":    `{"relations":[{"from":"Ada","to":"Ada","relationType":"knows"}]}`,
		"add_observations":    `{"observations":[{"entityName":"Ada","contents":["sings"]}]}`,
		"delete_entities":     `{"entityNames":["Nobody"]}`,
		"delete_observations": `{"deletions":[{"entityName":"Ada","observations":["sings"]}]}`,
		"delete_relations":    `{"relations":[{"from":"Ada","to":"Ada","relationType":"knows"}]}`,
		"search_nodes":        `{"query":"Ada"}`,
		"open_nodes":          `{"names":["Ada"]}`,
	})
}
