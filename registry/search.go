package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// callTool is the name of the tool with which a model calls the tools it has
// found, if its provider does not support deferred tools.
const callTool = "call_tool"

// searchSource is the source of tool_search and call_tool.
const searchSource = "builtin"

// Search is the table of tools of one session. It leaves the tools of toolsets out
// of the prompt if they are too many; the model finds them with the tool
// tool_search. This does not change the prompt, so that prompt caches stay valid.
// Host and built-in tools are always in the prompt.
//
// If the provider supports deferred tools (see [model.Deferrer]), the tools are
// deferred, and search results refer to them. Otherwise there is one more tool,
// call_tool, whose calls are rewritten into calls of the named tool before
// permissions and limits apply to them.
//
// BeforeModel and BeforeTool must be hooks of the session, and Search one of its
// sources of context. Search is safe for concurrent use.
type Search struct {
	registry *Registry
	base     core.ToolTable
	always   []string // more sources whose tools are always in the prompt

	mu     sync.Mutex
	freeze bool
	budget int // tokens; negative = no search
	native bool
	state  *searchState
	frozen *core.Snapshot // the prompt's table, from the first request on; nil before
	told   *core.Snapshot // the table as the model was last told
}

var _ core.ToolTable = (*Search)(nil)

// searchState is what was derived from one table.
type searchState struct {
	of     *core.Snapshot // the table
	now    *core.Snapshot // the table with the search
	native bool
	found  *catalogue // nil if all tools are in the prompt
}

// NewSearch adds a search to base, a table derived from this registry. Tools of
// the sources in always stay in the prompt. There is no search until SetBudget is
// called.
func (r *Registry) NewSearch(base core.ToolTable, always ...string) *Search {
	return &Search{registry: r, base: base, always: always, budget: -1}
}

// SetBudget sets how many tokens the definitions of toolsets may take in the
// prompt, and whether the provider supports deferred tools, from the next snapshot
// on. If tokens is negative, there is no search, and all tools are in the prompt.
func (s *Search) SetBudget(tokens int, native bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget, s.native, s.state, s.frozen, s.told = tokens, native, nil, nil, nil
}

// Freeze keeps the tools in the prompt as they are from the first request on,
// until SetBudget is called for another model: whatever tools come, change or go,
// prompt caches stay valid. There is always a search then, for those that come,
// and the model is told with the next input; see [Search.Context].
func (s *Search) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeze = true
}

// Snapshot implements [core.ToolTable].
func (s *Search) Snapshot(ctx context.Context) (*core.Snapshot, error) {
	all, err := s.base.Snapshot(ctx)
	if all == nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || s.state.of != all {
		s.state = s.disclose(all)
	}
	return s.state.now, err
}

// disclose decides which tools of a table are in the prompt.
func (s *Search) disclose(all *core.Snapshot) *searchState {
	state := &searchState{of: all, now: all, native: s.native}
	_, taken := all.Lookup(model.ToolSearch)
	if s.budget < 0 || taken || s.registry.disallows(model.ToolSearch) {
		return state
	}
	var shown, hidden []core.Entry
	tokens := 0
	for _, e := range all.Entries() {
		if s.registry.own(e.Source) || slices.Contains(s.always, e.Source) {
			shown = append(shown, e)
			continue
		}
		e.Deferred = true
		hidden = append(hidden, e)
		tokens += Tokens(e)
	}
	switch {
	case s.frozen != nil:
		return s.keep(state)
	case tokens <= s.budget && !s.freeze:
		return state
	case tokens <= s.budget:
		for i := range hidden {
			hidden[i].Deferred = false
		}
		shown, hidden = append(shown, hidden...), nil
	}
	state.found = newCatalogue(hidden)
	entries := append(shown, searchEntry(&searchTool{catalogue: state.found, native: s.native, listed: state.found.list(s.budget / 2)}))
	if !s.native || s.freeze {
		entries = append(entries, searchEntry(&callingTool{state.found}))
	}
	state.now = core.NewSnapshot(all.Version(), append(entries, hidden...))
	return state
}

// keep makes the table with the frozen prompt. Tools that are gone stay in it, and
// fail when they are called; new ones are only in the search.
func (s *Search) keep(state *searchState) *searchState {
	var entries, hidden []core.Entry
	for i, e := range s.frozen.Entries() {
		if now, ok := state.of.Lookup(e.ModelName); ok && e.Source == now.Source {
			now.Deferred, now.Shown = e.Deferred, &s.frozen.Defs()[i]
			e = now
		}
		if e.Deferred {
			hidden = append(hidden, e)
		}
		entries = append(entries, e)
	}
	for _, e := range state.of.Entries() {
		if _, known := s.frozen.Lookup(e.ModelName); !known {
			e.Deferred, e.Late = true, true
			entries, hidden = append(entries, e), append(hidden, e)
		}
	}
	state.found = newCatalogue(hidden)
	for i, e := range entries {
		switch t := e.Tool.(type) {
		case *searchTool:
			entries[i].Tool = &searchTool{catalogue: state.found, native: t.native, listed: t.listed}
		case *callingTool:
			entries[i].Tool = &callingTool{state.found}
		}
	}
	state.now = core.NewSnapshot(state.of.Version(), entries)
	return state
}

var _ core.ContextSource = (*Search)(nil)

// Context tells the model what has changed about the tools since it was last told.
// It implements [core.ContextSource].
func (s *Search) Context(ctx context.Context, _ core.ContextRequest) ([]core.Block, error) {
	_, err := s.Snapshot(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil || s.state == nil || s.state.of == s.told {
		return nil, err
	}
	text := difference(s.told, s.state.of)
	s.told = s.state.of
	if text == "" {
		return nil, err
	}
	return []core.Block{{Source: "tools", Text: text}}, err
}

// difference describes what has changed between tables.
func difference(before, now *core.Snapshot) string {
	var lines []string
	var added, gone []string
	for _, e := range now.Entries() {
		old, known := before.Lookup(e.ModelName)
		was, is := core.ToolDefinition{}, e.Tool.Definition()
		if known {
			was = old.Tool.Definition()
		}
		switch {
		case !known:
			added = append(added, e.ModelName)
		case was.Description != is.Description || string(was.Schema) != string(is.Schema):
			lines = append(lines, fmt.Sprintf("%s has changed: %s\nargs: %s", e.ModelName, strings.TrimSpace(is.Description), is.Schema))
		}
	}
	for _, e := range before.Entries() {
		if _, still := now.Lookup(e.ModelName); !still {
			gone = append(gone, e.ModelName)
		}
	}
	const most = 50
	name := func(list []string) string {
		if more := len(list) - most; more > 0 {
			list = append(list[:most:most], fmt.Sprintf("and %d more", more))
		}
		return strings.Join(list, ", ")
	}
	if len(added) > 0 {
		lines = append(lines, "New tools: "+name(added)+". Look them up with "+model.ToolSearch+".")
	}
	if len(gone) > 0 {
		lines = append(lines, "Tools that no longer exist: "+name(gone)+".")
	}
	return strings.Join(lines, "\n")
}

func searchEntry(t core.Tool) core.Entry {
	return core.Entry{ModelName: t.Definition().Name, Source: searchSource, Tool: t}
}

// Tokens estimates the size of a tool's definition in a prompt. It is never 0.
func Tokens(e core.Entry) int {
	d := e.Tool.Definition()
	return (len(e.ModelName) + len(d.Description) + len(d.Schema) + 3) / 4
}

// own reports whether the tools of a source are host or built-in tools.
func (r *Registry) own(source string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.members, func(m *member) bool { return m.name == source && (m.set == nil || m.builtin) })
}

// disallows reports whether the options exclude a tool.
func (r *Registry) disallows(name string) bool {
	return slices.ContainsFunc(r.options.Disallowed, func(pattern string) bool { return match(pattern, name) })
}

func (s *Search) current() *searchState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// BeforeModel removes deferred tools from a request to a provider that does not
// support them.
func (s *Search) BeforeModel(_ context.Context, req *model.Request) error {
	state := s.current()
	s.begin(state)
	if state != nil && state.found != nil && !state.native {
		req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(d model.ToolDef) bool { return d.Deferred })
	}
	return nil
}

// begin freezes the prompt with the first request.
func (s *Search) begin(state *searchState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freeze && s.frozen == nil && state != nil && state.found != nil {
		s.frozen, s.told = state.now, state.of
	}
}

// BeforeTool rewrites a call of call_tool into a call of the tool that it names. An
// invalid call is left unchanged; running it returns the error.
func (s *Search) BeforeTool(_ context.Context, call *model.ToolCall) error {
	state := s.current()
	if call.Name != callTool || state == nil || state.found == nil {
		return nil
	}
	var c callArgs
	if json.Unmarshal([]byte(call.Args), &c) != nil {
		return nil
	}
	if _, ok := state.of.Lookup(c.Name); !ok {
		return nil
	}
	args, ok := c.object()
	if !ok {
		return nil
	}
	call.Name, call.Args = c.Name, args
	return nil
}

// callArgs are the arguments of call_tool.
type callArgs struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// object returns the arguments of the tool. Some models encode them as a string.
func (c callArgs) object() (string, bool) {
	args := strings.TrimSpace(string(c.Args))
	var text string
	if json.Unmarshal(c.Args, &text) == nil {
		args = strings.TrimSpace(text)
	}
	if args == "" || args == "null" {
		args = "{}"
	}
	return args, strings.HasPrefix(args, "{") && json.Valid([]byte(args))
}
