package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/registry"
)

// many are tools of a toolset, and a registry with them beside a built-in and a
// host tool.
func many(t *testing.T, o registry.Options) *registry.Registry {
	t.Helper()
	r := newRegistry(t, o)
	if err := r.AddBuiltin(t.Context(), newToolset("builtin", "shell")); err != nil {
		t.Fatal(err)
	}
	if err := r.AddHost(tools("deploy")...); err != nil {
		t.Fatal(err)
	}
	set := newToolset("git hub")
	for _, text := range []string{"create_issue: Open an issue.", "list_issues: List issues.", "merge: Merge a pull request."} {
		name, text, _ := strings.Cut(text, ": ")
		set.list = append(set.list, &tool{name: name, text: text, schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`})
	}
	for _, s := range []core.Toolset{set, newToolset("skills", "skill")} {
		if err := r.Add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// shown returns the names that are in the prompt, and those that are deferred.
func shown(s *core.Snapshot) (names, deferred string) {
	var in, out []string
	for _, d := range s.Defs() {
		if d.Deferred {
			out = append(out, d.Name)
		} else {
			in = append(in, d.Name)
		}
	}
	return strings.Join(in, " "), strings.Join(out, " ")
}

func TestSearchBudget(t *testing.T) {
	t.Parallel()
	const all = "deploy shell create_issue list_issues merge skill"
	tests := []struct {
		name     string
		options  registry.Options
		budget   int
		native   bool
		shown    string
		deferred string
	}{
		{"off", registry.Options{}, -1, true, all, ""},
		{"all fit", registry.Options{}, 1000, true, all, ""},
		{"deferred", registry.Options{}, 10, true, "deploy shell skill tool_search", "create_issue list_issues merge"},
		{"by call_tool", registry.Options{}, 10, false, "deploy shell skill tool_search call_tool", "create_issue list_issues merge"},
		{"search disallowed", registry.Options{Disallowed: []string{"tool_*"}}, 10, true, all, ""},
	}
	for _, tt := range tests {
		r := many(t, tt.options)
		s := r.NewSearch(r, "skills")
		s.SetBudget(tt.budget, tt.native)
		in, out := shown(snapshotOf(t, s))
		sorted := func(text string) string {
			list := strings.Fields(text)
			slices.Sort(list)
			return strings.Join(list, " ")
		}
		if sorted(in) != sorted(tt.shown) || out != tt.deferred {
			t.Errorf("%s: in the prompt %q, deferred %q; want %q, %q", tt.name, in, out, tt.shown, tt.deferred)
		}
		if again := snapshotOf(t, s); again != snapshotOf(t, s) {
			t.Errorf("%s: the table is another one though nothing changed", tt.name)
		}
	}
}

func TestSearchFinds(t *testing.T) {
	t.Parallel()
	r := many(t, registry.Options{})
	s := r.NewSearch(r)
	s.SetBudget(10, true)
	table := snapshotOf(t, s)
	for query, want := range map[string]string{
		"merge pull request":        "merge",
		"show me all issues":        "list_issues create_issue",
		"merge, then `list_issues`": "merge list_issues create_issue",
	} {
		res := run(t, table, model.ToolSearch, fmt.Sprintf(`{"query":%q}`, query))
		if got := strings.Join(references(res), " "); got != want || res.Code != "" {
			t.Errorf("%q finds %q (%s), want %q", query, got, res.Code, want)
		}
	}
	if got := references(run(t, table, model.ToolSearch, `{"query":"issues","limit":1}`)); len(got) != 1 {
		t.Errorf("a limit of 1 finds %q", got)
	}
	res := run(t, table, model.ToolSearch, `{"query":"bake a cake"}`)
	if text := model.Parts(res.Content).Text(); res.Code != core.CodeNotFound || !strings.Contains(text, "No matching tools") {
		t.Errorf("nothing to be found: %s %q", res.Code, text)
	}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	r := many(t, registry.Options{})
	s := r.NewSearch(r)
	early := &model.ToolCall{Name: "call_tool", Args: `{"name":"merge","args":{}}`}
	if err := s.BeforeTool(t.Context(), early); err != nil || early.Name != "call_tool" {
		t.Errorf("before there is a search, a call becomes %+v, %v", early, err)
	}
	s.SetBudget(10, false)
	table := snapshotOf(t, s)
	text := model.Parts(run(t, table, model.ToolSearch, `{"query":"merge"}`).Content).Text()
	if !strings.Contains(text, "## merge\nMerge a pull request.\nargs: {\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}") {
		t.Errorf("the search's result has no definition: %q", text)
	}
	req := &model.Request{Tools: table.Defs()}
	if err := s.BeforeModel(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(req.Tools, func(d model.ToolDef) bool { return d.Deferred }) || len(req.Tools) == 0 {
		t.Errorf("the request has %+v", req.Tools)
	}
	for _, tt := range []struct{ args, name, becomes string }{
		{`{"name":"merge","args":{"n":12345678901234567890}}`, "merge", `{"n":12345678901234567890}`},
		{`{"name":"merge","args":"{\"n\": 1}"}`, "merge", `{"n": 1}`},
		{`{"name":"merge","args":null}`, "merge", `{}`},
		{`{"name":"merge"}`, "merge", `{}`},
		{`{"name":"shell","args":{}}`, "shell", `{}`},
		{`{"name":"merge","args":[1]}`, "call_tool", ""},
		{`{"name":"merge","args":"no json"}`, "call_tool", ""},
		{`{"name":"murge","args":{}}`, "call_tool", ""},
		{`not json`, "call_tool", ""},
	} {
		call := &model.ToolCall{ID: "1", Name: "call_tool", Args: tt.args}
		if err := s.BeforeTool(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if tt.becomes == "" {
			tt.becomes = tt.args
		}
		if call.Name != tt.name || call.Args != tt.becomes || call.ID != "1" {
			t.Errorf("%s becomes %+v, want %s %s", tt.args, call, tt.name, tt.becomes)
		}
	}
	other := &model.ToolCall{Name: "shell", Args: `{"name":"merge"}`}
	if err := s.BeforeTool(t.Context(), other); err != nil || other.Name != "shell" {
		t.Errorf("another tool's call becomes %+v, %v", other, err)
	}
	for args, want := range map[string]string{
		`{"name":"list issues","args":{}}`: `There is no tool "list issues". Did you mean list_issues?`,
		`{"name":"xyzzy","args":{}}`:       "Search for one with tool_search",
		`{"name":"merge","args":{}}`:       "must be an object", // not rewritten
	} {
		res := run(t, table, "call_tool", args)
		if text := model.Parts(res.Content).Text(); res.Code == "" || !strings.Contains(text, want) {
			t.Errorf("%s: %s %q, want a failure with %q", args, res.Code, text, want)
		}
	}
}

// TestSearchTellsNames shows how the prompt describes tools that are not in it.
func TestSearchTellsNames(t *testing.T) {
	t.Parallel()
	for budget, want := range map[int]string{
		40: "git_hub: create_issue, list_issues, merge\nskills: skill",
		10: "git_hub, skills",
	} {
		r := many(t, registry.Options{})
		s := r.NewSearch(r)
		s.SetBudget(budget, true)
		e, ok := snapshotOf(t, s).Lookup(model.ToolSearch)
		if !ok || !strings.Contains(e.Tool.Definition().Description, "There are more tools") || !strings.HasSuffix(e.Tool.Definition().Description, "\n"+want) {
			t.Errorf("budget %d: %v, %q; want %q at the end", budget, ok, e.Tool, want)
		}
	}
}

// TestSearchNamesAreTaken shows that no toolset gets the names of the search, but
// that a host can.
func TestSearchNamesAreTaken(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, registry.Options{})
	if err := r.Add(t.Context(), newToolset("evil", "tool_search", "call_tool")); err != nil {
		t.Fatal(err)
	}
	s := r.NewSearch(r)
	s.SetBudget(0, false)
	in, out := shown(snapshotOf(t, s))
	if in != "tool_search call_tool" || out != "evil__tool_search evil__call_tool" {
		t.Errorf("in the prompt %q, deferred %q", in, out)
	}
	if err := r.AddHost(tools("tool_search")...); err != nil {
		t.Fatal(err)
	}
	if in, out := shown(snapshotOf(t, s)); out != "" || !strings.Contains(in, "tool_search") {
		t.Errorf("with a search of the host's, in the prompt %q, deferred %q", in, out)
	}
}

// TestSearchFollowsChanges adds a toolset while a search is in use.
func TestSearchFollowsChanges(t *testing.T) {
	t.Parallel()
	r := many(t, registry.Options{})
	s := r.NewSearch(r)
	s.SetBudget(10, true)
	before := snapshotOf(t, s)
	late := newToolset("late")
	late.list = []core.Tool{&tool{name: "teleport", text: "Moves you."}}
	if err := r.Add(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if got := references(run(t, before, model.ToolSearch, `{"query":"teleport"}`)); len(got) != 0 {
		t.Errorf("the old table finds %q", got)
	}
	if got := references(run(t, snapshotOf(t, s), model.ToolSearch, `{"query":"teleport"}`)); !slices.Equal(got, []string{"teleport"}) {
		t.Errorf("the new table finds %q", got)
	}
	s.SetBudget(10, false)
	if _, ok := snapshotOf(t, s).Lookup("call_tool"); !ok {
		t.Error("another model, and there is no call_tool")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Snapshot(ended); err != nil {
		t.Errorf("a table that is there: %v", err)
	}
}
