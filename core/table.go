package core

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core/internal/toolname"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/schema"
)

// Entry is a tool in a table, with the name that the model uses for it.
type Entry struct {
	ModelName string
	Source    string // the toolset's name
	Tool      Tool
	Deferred  bool // not in the prompt until a search finds it
	Late      bool // deferred, and added after the prompt was first sent
	// Shown is the definition in the prompt, if the tool's has changed since.
	Shown *model.ToolDef

	check *checker
}

// Snapshot is an immutable table of tools. A request is sent with one, and the
// calls in its response are looked up in the same.
type Snapshot struct {
	version uint64
	entries []Entry
	byName  map[string]int // indexes in entries and defs
	defs    []model.ToolDef
}

// NewSnapshot builds a table. The model sees the entries in this order; of two
// with the same name the later wins. The version distinguishes tables.
func NewSnapshot(version uint64, entries []Entry) *Snapshot {
	s := &Snapshot{version: version, entries: make([]Entry, 0, len(entries)), byName: make(map[string]int, len(entries))}
	for _, e := range entries {
		e.check = &checker{}
		if i, ok := s.byName[e.ModelName]; ok {
			s.entries[i] = e
			continue
		}
		s.byName[e.ModelName] = len(s.entries)
		s.entries = append(s.entries, e)
	}
	s.defs = make([]model.ToolDef, len(s.entries))
	for i := range s.entries {
		e := &s.entries[i]
		d := e.Tool.Definition()
		s.defs[i] = model.ToolDef{Name: e.ModelName, Description: d.Description, Schema: d.Schema, Deferred: e.Deferred, Late: e.Late}
		if e.Shown != nil {
			s.defs[i] = *e.Shown
		}
	}
	return s
}

// Version distinguishes tables.
func (s *Snapshot) Version() uint64 { return s.version }

// Lookup returns the tool with the model's name for it.
func (s *Snapshot) Lookup(name string) (Entry, bool) {
	if i, ok := s.byName[name]; ok {
		return s.entries[i], true
	}
	return Entry{}, false
}

// Entries returns the tools in order. The slice is shared: do not change it.
func (s *Snapshot) Entries() []Entry { return s.entries }

// Defs returns the definitions for the model. The slice is shared.
func (s *Snapshot) Defs() []model.ToolDef { return s.defs }

// Names returns the names of the tools in the prompt, in order.
func (s *Snapshot) Names() []string {
	var names []string
	for _, d := range s.defs {
		if !d.Deferred {
			names = append(names, d.Name)
		}
	}
	return names
}

// StaticTools is a table of the given tools that never changes, for hosts that
// need no registry. Of two with the same name the later wins.
func StaticTools(tools ...Tool) ToolTable {
	entries := make([]Entry, len(tools))
	for i, t := range tools {
		entries[i] = Entry{ModelName: t.Definition().Name, Source: "host", Tool: t}
	}
	return staticTable{NewSnapshot(1, entries)}
}

type staticTable struct{ snapshot *Snapshot }

func (t staticTable) Snapshot(context.Context) (*Snapshot, error) { return t.snapshot, nil }

// find looks a tool up as Lookup does, also by a name that a model spells
// differently.
func (s *Snapshot) find(name string) (Entry, bool) {
	if e, ok := s.Lookup(name); ok {
		return e, true
	}
	name, _ = toolname.Find(name, slices.Collect(maps.Keys(s.byName)))
	return s.Lookup(name)
}

// Validate checks arguments against the tool's schema. The error names the
// invalid value and what was expected.
func (e Entry) Validate(args json.RawMessage) error { return e.schema().Validate(args) }

// Coerce corrects arguments whose meaning is clear, with a note for each
// correction, and validates them.
func (e Entry) Coerce(args json.RawMessage) (json.RawMessage, []string, error) {
	s := e.schema()
	args, notes := s.Coerce(args)
	return args, notes, s.Validate(args)
}

func (e Entry) schema() *schema.Schema {
	e.check.once.Do(func() { e.check.schema = schema.Compile(e.Tool.Definition().Schema) })
	return e.check.schema
}

// checker parses a tool's schema at its first call.
type checker struct {
	once   sync.Once
	schema *schema.Schema
}
