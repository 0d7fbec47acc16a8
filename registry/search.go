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

// callTool is the name of the tool by which a model calls tools that it has
// found where its service cannot take them up.
const callTool = "call_tool"

// searchSource is the source of the tools of a search.
const searchSource = "builtin"

// Search is a table of tools for one session in which tools of toolsets are left
// out of the prompt when they are too many for it. The model finds them with the
// tool tool_search: what the prompt holds does not change by that, and caches of
// it stay valid. Host and built-in tools are always in the prompt.
//
// How the model calls what it has found is up to its service. Where that takes
// tools up later (see [model.Deferrer]) they are deferred, and results of the
// search refer to them. Elsewhere there is one more tool, call_tool, whose calls
// become calls of the tool that they name before anything looks at them.
//
// BeforeModel and BeforeTool have to be hooks of the session. Search is safe for
// concurrent use.
type Search struct {
	registry *Registry
	base     core.ToolTable
	always   []string // further sources whose tools are always in the prompt

	mu     sync.Mutex
	budget int // tokens; below 0 there is no search
	native bool
	state  *searchState
}

var _ core.ToolTable = (*Search)(nil)

// searchState belongs to one table and one way of calling.
type searchState struct {
	of     *core.Snapshot
	now    *core.Snapshot
	native bool
	found  *catalogue // nil if all tools are in the prompt
}

// NewSearch returns the tools of base, a table that is made of this registry's,
// with a search. Tools of the sources in always are always in the prompt. Until
// SetBudget is called there is no search.
func (r *Registry) NewSearch(base core.ToolTable, always ...string) *Search {
	return &Search{registry: r, base: base, always: always, budget: -1}
}

// SetBudget says how many tokens the definitions of toolsets may take in the
// prompt, from the next snapshot on, and whether the model's service takes up
// tools that are deferred. Below 0 there is no search, and all tools are in the
// prompt.
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

// disclose decides what of a table is in the prompt.
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

// Tokens estimates what a tool's definition takes in a prompt.
func Tokens(e core.Entry) int {
	d := e.Tool.Definition()
	return (len(e.ModelName) + len(d.Description) + len(d.Schema)) / 4
}

// own reports whether a source's tools are the host's or built in.
func (r *Registry) own(source string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.members, func(m *member) bool { return m.name == source && (m.set == nil || m.builtin) })
}

// disallows reports whether the options forbid a tool.
func (r *Registry) disallows(name string) bool {
	return slices.ContainsFunc(r.options.Disallowed, func(pattern string) bool { return match(pattern, name) })
}

func (s *Search) current() *searchState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// BeforeModel leaves deferred tools out of a request to a service that cannot
// take them up.
func (s *Search) BeforeModel(_ context.Context, req *model.Request) error {
	if state := s.current(); state != nil && state.found != nil && !state.native {
		req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(d model.ToolDef) bool { return d.Deferred })
	}
	return nil
}

// BeforeTool makes a call of call_tool a call of the tool that it names. One that
// names none stays as it is; the tool says what is wrong with it.
func (s *Search) BeforeTool(_ context.Context, call *model.ToolCall) error {
	state := s.current()
	if call.Name != callTool || state == nil || state.found == nil {
		return nil
	}
	var c calling
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

// calling are the arguments of call_tool.
type calling struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// object returns the arguments of the tool. Models write them as a text at
// times, which is as clear.
func (c calling) object() (string, bool) {
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
