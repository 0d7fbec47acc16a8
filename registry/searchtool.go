package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
)

const (
	usualResults = 5
	mostResults  = 20
)

// searchTool is tool_search.
type searchTool struct {
	catalogue *catalogue
	native    bool
	listed    string
}

// Definition implements [core.Tool].
func (t *searchTool) Definition() core.ToolDefinition {
	how := "Tools that it finds can be called like any other."
	if !t.native {
		how = "Call the tools that it finds with " + callTool + "."
	}
	more := "There are more tools than you see"
	if t.listed == "" {
		more = "Tools may come during the session"
	} else {
		how += "\nSources:\n" + t.listed
	}
	return core.ToolDefinition{
		Name:        model.ToolSearch,
		Description: "Finds tools by what they do. " + more + "; search before you say that something cannot be done. " + how,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","minLength":1,"description":"What the tool should do, in a few words, such as \"comment on a pull request\"; or the tool's name"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":20,"description":"Maximum number of tools; default 5"}},` +
			`"required":["query"],"additionalProperties":false}`),
		ReadOnly: true,
	}
}

// Access implements [core.Tool]: a search accesses nothing.
func (t *searchTool) Access(context.Context, *core.Call) ([]core.Access, error) { return nil, nil }

// Run implements [core.Tool].
func (t *searchTool) Run(_ context.Context, call *core.Call) (core.Result, error) {
	args := struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}{Limit: usualResults}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return core.Failf(core.CodeValidation, "%v", err), nil
	}
	found := t.catalogue.search(args.Query, min(args.Limit, mostResults))
	if len(found) == 0 {
		return core.Fail(core.CodeNotFound, "No matching tools. Try other words, such as the name of the service or what it works on."), nil
	}
	names := make([]string, len(found))
	for i, e := range found {
		names[i] = e.ModelName
	}
	structured, err := json.Marshal(map[string]any{"tools": names})
	if err != nil {
		return core.Result{}, err
	}
	res := core.Result{Structured: structured}
	if !t.native || slices.ContainsFunc(found, func(e core.Entry) bool { return e.Late }) {
		res.Content = model.TextParts(describe(found))
	}
	if !t.native {
		return res, nil
	}
	for _, name := range names {
		res.Content = append(res.Content, model.ToolReference{Name: name})
	}
	return res, nil
}

// describe returns the definitions of tools as text.
func describe(found []core.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Call one with %s: its name, and args by its schema.\n", callTool)
	for _, e := range found {
		d := e.Tool.Definition()
		schema := d.Schema
		var compact bytes.Buffer
		if json.Compact(&compact, schema) == nil {
			schema = compact.Bytes()
		}
		fmt.Fprintf(&b, "\n## %s\n%s\nargs: %s\n", e.ModelName, strings.TrimSpace(d.Description), schema)
	}
	return b.String()
}

// callingTool is call_tool. It runs only for calls with an unknown tool or invalid
// args: BeforeTool rewrites all others.
type callingTool struct{ catalogue *catalogue }

// Definition implements [core.Tool].
func (t *callingTool) Definition() core.ToolDefinition {
	return core.ToolDefinition{
		Name:        callTool,
		Description: "Calls a tool found by " + model.ToolSearch + ".",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"name":{"type":"string","description":"The tool's name"},` +
			`"args":{"type":"object","description":"Its arguments, following its schema"}},` +
			`"required":["name","args"],"additionalProperties":false}`),
	}
}

// Access implements [core.Tool]: a call that was not rewritten accesses nothing.
func (t *callingTool) Access(context.Context, *core.Call) ([]core.Access, error) { return nil, nil }

// Run implements [core.Tool].
func (t *callingTool) Run(_ context.Context, call *core.Call) (core.Result, error) {
	var c callArgs
	if err := json.Unmarshal(call.Args, &c); err != nil {
		return core.Failf(core.CodeValidation, "%v", err), nil
	}
	if _, ok := t.catalogue.byName[c.Name]; ok {
		return core.Failf(core.CodeValidation, "The args of %s must be an object.", c.Name), nil
	}
	if near := jsonpos.Nearest(c.Name, slices.Sorted(maps.Keys(t.catalogue.byName))); near != "" {
		return core.Failf(core.CodeNotFound, "There is no tool %q. Did you mean %s?", c.Name, near), nil
	}
	return core.Failf(core.CodeNotFound, "There is no tool %q. Search for one with %s.", c.Name, model.ToolSearch), nil
}
