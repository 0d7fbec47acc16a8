package registry

import (
	"context"
	"encoding/json"
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
// BeforeModel and BeforeTool must be hooks of the session. Search is safe for
// concurrent use.
type Search struct {
	registry *Registry
	base     core.ToolTable
	always   []string // more sources whose tools are always in the prompt

	mu     sync.Mutex
	budget int // tokens; negative = no search
	native bool
	state  *searchState
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
	if s.budget != tokens || s.native != native {
		s.budget, s.native, s.state = tokens, native, nil
	}
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
	if tokens <= s.budget {
		return state
	}
	state.found = newCatalogue(hidden)
	entries := append(shown, searchEntry(&searchTool{catalogue: state.found, native: s.native, listed: state.found.list(s.budget / 2)}))
	if !s.native {
		entries = append(entries, searchEntry(&callingTool{state.found}))
	}
	state.now = core.NewSnapshot(all.Version(), append(entries, hidden...))
	return state
}

func searchEntry(t core.Tool) core.Entry {
	return core.Entry{ModelName: t.Definition().Name, Source: searchSource, Tool: t}
}

// Tokens estimates the size of a tool's definition in a prompt.
func Tokens(e core.Entry) int {
	d := e.Tool.Definition()
	return (len(e.ModelName) + len(d.Description) + len(d.Schema)) / 4
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
	if state := s.current(); state != nil && state.found != nil && !state.native {
		req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(d model.ToolDef) bool { return d.Deferred })
	}
	return nil
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
