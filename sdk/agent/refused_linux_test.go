package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/permissions"
)

// fileServer is an MCP server whose tool writes the file in $TARGET.
const fileServer = `while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}}';;
*tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"write","inputSchema":{"type":"object"}}]}}';;
*tools/call*) if out=$( (echo x >"$TARGET") 2>&1); then echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"written"}]}}'
  else echo '{"jsonrpc":"2.0","id":'$id',"result":{"isError":true,"content":[{"type":"text","text":"'"$out"'"}]}}'; fi;;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"unknown"}}';;
esac
done`

// answers answers questions, and keeps their titles.
type answers struct {
	choice core.Choice
	titles []string
}

func (a *answers) Ask(_ context.Context, q core.Question) (core.Answer, error) {
	a.titles = append(a.titles, q.Title)
	if a.choice == "" {
		return core.Answer{}, core.ErrNonInteractive
	}
	return core.Answer{Choice: a.choice}, nil
}

// TestRefusedAccess: what the sandbox of a plugin's server refuses first is asked, once.
func TestRefusedAccess(t *testing.T) {
	for _, tt := range []struct {
		choice core.Choice
		target string // below the home directory
		want   []string
		asked  int
	}{
		{core.ChoiceYes, "src/ws/made", []string{"the user now lets MCP server p_files write ", "written"}, 1},
		{core.ChoiceNo, "src/ws/made", []string{"the user does not let MCP server p_files write ", "ead-only"}, 1},
		{"", "src/ws/made", []string{"MCP server p_files may not write ", "ead-only"}, 1},
		{core.ChoiceYes, ".npmrc", []string{".npmrc", ".npmrc"}, 0}, // a secret is not offered
	} {
		t.Run(string(tt.choice)+" "+tt.target, func(t *testing.T) {
			home, ws := newHome(t)
			var allowed []string
			server := mcp.Configured{
				Name: "p_files", Source: "plugin p", Hint: "see the help",
				Server: mcp.Server{Command: "sh", Args: []string{"-c", fileServer}, Env: map[string]string{"TARGET": filepath.Join(home, tt.target)}, Sandbox: &mcp.Confine{Private: true}},
				Widen: func(_ context.Context, more core.Access) (*mcp.Confine, error) {
					allowed = append(allowed, string(more.Scope)+" "+more.Resource)
					return &mcp.Confine{Private: true, Writable: []string{more.Resource}}, nil
				},
			}
			a, err := Open(t.Context(), Options{
				Dir: ws, Home: filepath.Join(home, ".agent"), Permissions: permissions.Options{Mode: permissions.ModeBypass},
				Sandbox: &SandboxOptions{MCP: sandbox.ModeNamespace, Shell: sandbox.ModeNamespace}, MCP: MCPOptions{Servers: []mcp.Configured{server}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if !a.Env().(*env.Local).Sandboxed(t.Context()) {
				t.Skip("this level does not work on this machine")
			}
			if _, err := a.MCP().Refresh(t.Context(), "p_files"); err != nil {
				t.Fatal(err)
			}
			call := func(id string) coretest.Turn {
				return coretest.CallTools(model.ToolCall{ID: id, Name: mcp.ToolName("p_files", "write"), Args: "{}"})
			}
			asker := &answers{choice: tt.choice}
			s, err := a.NewSession(t.Context(), SessionOptions{Provider: coretest.Model(call("a"), call("b"), coretest.Say("Done.")), Asker: asker})
			if err != nil {
				t.Fatal(err)
			}
			events := coretest.Collect(t, s, nil)
			_, err = s.Submit(t.Context(), core.TextInput("go"))
			if err = errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			results := coretest.Bodies[event.ToolResult](events.Drain(t))
			if len(results) != 2 {
				t.Fatalf("%d results", len(results))
			}
			for i, want := range tt.want {
				if text := results[i].Content.Text(); !strings.Contains(text, want) {
					t.Errorf("result %d is %q, want %q", i+1, text, want)
				}
			}
			if len(asker.titles) != tt.asked {
				t.Errorf("asked %q", asker.titles)
			}
			if want := []string{"fs-write " + ws}; tt.choice == core.ChoiceYes && tt.asked > 0 && !slices.Equal(allowed, want) {
				t.Errorf("allowed %q, want %q", allowed, want)
			}
			if _, err := os.Stat(filepath.Join(ws, "made")); (err == nil) != (len(allowed) > 0) {
				t.Errorf("the file: %v", err)
			}
		})
	}
}
