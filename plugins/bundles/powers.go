package bundles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// Powers describes what of the bundle runs, reads or reaches something: hooks, MCP and
// language servers, settings and context files. Two bundles with equal powers differ in
// texts, and in the programs in their folder. Each is a description, a tab and a hash of
// all that it stands for.
func (b *Bundle) Powers() []string {
	list := []string{}
	add := func(what string, all ...any) {
		data, _ := json.Marshal(all) // of what was read as JSON
		sum := sha256.Sum256(data)
		list = append(list, line(what, 200)+"\t"+hex.EncodeToString(sum[:]))
	}
	for _, s := range b.Skills {
		if s.hooks != "" {
			add("hooks of the skill "+s.Name, s.hooks)
		}
	}
	for _, h := range b.Hooks {
		for event, groups := range h.events() {
			for _, group := range groups {
				add("hook "+event+" of "+h.Path, event, group)
			}
		}
	}
	for _, s := range b.Servers {
		add("MCP server "+s.Name, s)
	}
	for _, l := range b.Languages {
		add("language server "+l.Name, l)
	}
	for _, s := range b.Settings {
		add("setting "+s.Key, s.Key, s.Env, s.Secret)
	}
	for _, at := range b.Context {
		add("context file "+at, at)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ProgramOnly reports whether, once the bundle was read, only its program uses files of
// its folder: it has no skills, commands, hooks and servers, which may run some of them.
func (b *Bundle) ProgramOnly() bool {
	return b.Program && len(b.Skills)+len(b.Commands)+len(b.Hooks)+len(b.Servers)+len(b.Languages) == 0
}

// HookPoints returns the events that the bundle has hooks for, except those of its skills.
func (b *Bundle) HookPoints() []string {
	var list []string
	for _, h := range b.Hooks {
		list = slices.AppendSeq(list, maps.Keys(h.events()))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// events returns the groups of hooks by event.
func (h Hooks) events() map[string][]json.RawMessage {
	var file map[string]map[string][]json.RawMessage
	_ = json.Unmarshal(h.Data, &file) // it was made by this package
	return file["hooks"]
}
