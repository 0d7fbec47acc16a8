package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/profile"
	"github.com/seed-009c0928/agent/core/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// args are a call's arguments.
type args map[string]any

// run calls a tool as the pipeline does: the arguments are validated, and the
// environment is restricted to the accesses that the tool declares. It returns
// the result and the text for the model.
func run(t testing.TB, tool core.Tool, where core.Environment, in args) (core.Result, string) {
	t.Helper()
	return runContext(t.Context(), t, tool, where, in, nil)
}

func runContext(ctx context.Context, t testing.TB, tool core.Tool, where core.Environment, in args, except func(string) bool) (core.Result, string) {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	entry, _ := core.NewSnapshot(1, []core.Entry{{ModelName: "tool", Tool: tool}}).Lookup("tool")
	if err := entry.Validate(raw); err != nil {
		t.Fatalf("arguments %s: %v", raw, err)
	}
	var out bytes.Buffer
	call := &core.Call{ID: "1", Name: tool.Definition().Name, Args: raw, Env: where, Output: &out, Session: core.SessionInfo{
		Dir: where.Info().Dir, CommandTimeout: 10 * time.Second, MaxCommandTimeout: time.Minute,
	}}
	accesses, err := tool.Access(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	var grants []core.Grant
	for _, a := range accesses {
		if a.Scope.IsFile() {
			to, err := where.Resolve(context.Background(), a.Resource)
			if err != nil {
				t.Fatal(err)
			}
			a.Resource = to.Path
		}
		grants = append(grants, core.Grant{Access: a, Except: except})
	}
	call.Env = core.Restrict(where, grants, nil)
	result, err := tool.Run(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	return result, out.String() + model.Parts(result.Content).Text()
}

// check calls a tool and compares the code and the text of the result.
func check(t *testing.T, tool core.Tool, where core.Environment, in args, code core.ErrorCode, want string) {
	t.Helper()
	result, got := run(t, tool, where, in)
	if result.Code != code {
		t.Errorf("code %q, want %q", result.Code, code)
	}
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// checkHas calls a tool and looks for pieces in the result.
func checkHas(t *testing.T, tool core.Tool, where core.Environment, in args, code core.ErrorCode, pieces ...string) {
	t.Helper()
	result, got := run(t, tool, where, in)
	if result.Code != code {
		t.Errorf("code %q, want %q", result.Code, code)
	}
	for _, piece := range pieces {
		if !strings.Contains(got, piece) {
			t.Errorf("%q is not in:\n%s", piece, got)
		}
	}
}

func content(t *testing.T, where core.Environment, path string) string {
	t.Helper()
	data, err := core.ReadFile(t.Context(), where.Files(), path, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestBuiltin(t *testing.T) {
	set := tools.Builtin(tools.Options{})
	if set.Name() != "builtin" || set.Changed() != nil {
		t.Errorf("name %q, changed %v", set.Name(), set.Changed())
	}
	list, err := set.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, tool := range list {
		d := tool.Definition()
		if seen[d.Name] {
			t.Errorf("two tools are named %s", d.Name)
		}
		seen[d.Name] = true
		for _, name := range d.Profiles {
			if !slices.Contains(profile.Names(), name) {
				t.Errorf("%s names the profile %q, which does not exist: use %q", d.Name, name, profile.Names())
			}
		}
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

// TestToolsOfProfiles: which of the built-in tools each profile lacks.
func TestToolsOfProfiles(t *testing.T) {
	list, err := tools.Builtin(tools.Options{}).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"default":   {"read_many_files", "apply_patch"},
		"openai":    {"read_many_files", "edit_file", "list_dir"},
		"anthropic": {"read_many_files", "apply_patch", "list_dir"},
		"gemini":    {"apply_patch"},
		"unknown":   nil,
	} {
		var got []string
		for _, tool := range list {
			if d := tool.Definition(); !profile.HasTool(name, d) {
				got = append(got, d.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lacks %q, want %q", name, got, want)
		}
	}
}

// TestDefinitions: the definitions are part of every request, so changes must be
// visible and they must stay small.
func TestDefinitions(t *testing.T) {
	list, err := tools.Builtin(tools.Options{}).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var defs []core.ToolDefinition
	size := map[string]int{} // of a profile's tools
	for _, tool := range list {
		d := tool.Definition()
		defs = append(defs, d)
		for _, name := range profile.Names() {
			if profile.HasTool(name, d) {
				size[name] += len(d.Description) + len(d.Schema)
			}
		}
		if n := len(d.Description); n == 0 || n > 700 {
			t.Errorf("%s: the description has %d bytes, want 1 to 700", d.Name, n)
		}
	}
	for name, n := range size {
		if n > 7_900 || n < 1_000 {
			t.Errorf("the definitions of profile %s have %d bytes together, want at most 7900", name, n)
		}
	}
	got, err := json.MarshalIndent(defs, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, "testdata/definitions.golden.json", append(got, '\n'))
}

func TestAccess(t *testing.T) {
	withShell := env.NewMemory("", nil)
	withShell.Exec = func(context.Context, core.Command) (core.Exit, error) { return core.Exit{}, nil }
	tests := []struct {
		tool core.Tool
		args string
		want []core.Access
	}{
		{tools.ReadFile(), `{"file_path":"a"}`, []core.Access{{Scope: core.ScopeRead, Resource: "a"}}},
		{tools.ReadFile(), `{"file_path":"context:1"}`, nil},
		{tools.WriteFile(), `{"file_path":"a","content":""}`, []core.Access{{Scope: core.ScopeWrite, Resource: "a"}}}, // it does not exist
		{tools.WriteFile(), `{"file_path":"context:1","content":""}`, []core.Access{{Scope: core.ScopeWrite, Resource: "context:1"}}},
		{tools.EditFile(), `{"file_path":"a","old_string":"b","new_string":"c"}`, []core.Access{
			{Scope: core.ScopeRead, Resource: "a"}, {Scope: core.ScopeWrite, Resource: "a"},
		}},
		{tools.Grep(), `{"pattern":"x"}`, []core.Access{{Scope: core.ScopeRead, Resource: ".", Recursive: true}}},
		{tools.Glob(), `{"pattern":"x","path":"/a"}`, []core.Access{{Scope: core.ScopeRead, Resource: "/a", Recursive: true}}},
		{tools.Glob(), `{"pattern":"/etc/**/*.conf"}`, []core.Access{{Scope: core.ScopeRead, Resource: "/etc", Recursive: true}}},
		{tools.Glob(), `{"pattern":"a/../../b/*.go","path":"c"}`, []core.Access{{Scope: core.ScopeRead, Resource: "b", Recursive: true}}},
		{tools.Glob(), `{"pattern":"../../b/*.go","path":"c"}`, []core.Access{{Scope: core.ScopeRead, Resource: "../b", Recursive: true}}},
		{tools.ListDir(), `{}`, []core.Access{{Scope: core.ScopeRead, Resource: "."}}},
		{tools.ListDir(), `{"path":"a","depth":2}`, []core.Access{{Scope: core.ScopeRead, Resource: "a", Recursive: true}}},
		{tools.Shell(), `{"command":"go test ./..."}`, []core.Access{
			{Scope: core.ScopeShell, Resource: "go test ./...", Argv: []string{"go", "test", "./..."}},
		}},
		{tools.Shell(), `{"command":"a && b"}`, []core.Access{{Scope: core.ScopeShell, Resource: "a && b"}}},
	}
	for _, tt := range tests {
		t.Run(tt.tool.Definition().Name+" "+tt.args, func(t *testing.T) {
			got, err := tt.tool.Access(t.Context(), &core.Call{Args: json.RawMessage(tt.args), Env: withShell})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %+v, want %+v", got, tt.want)
			}
			for i := range got {
				if got[i].Key() != tt.want[i].Key() {
					t.Errorf("got %+v, want %+v", got[i], tt.want[i])
				}
			}
		})
	}
}
