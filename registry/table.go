package registry

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// entries names the tools of all members, in order, and leaves out those that
// the options do. Names are given out before that, so that a tool that is left
// out does not make room for another of its name.
func (r *Registry) entries() []core.Entry {
	names := r.reserved()
	var entries []core.Entry
	for _, m := range r.members {
		for _, t := range m.tools {
			name, ok := r.nameFor(names, m, t)
			if ok && r.options.admit(name) {
				entries = append(entries, core.Entry{ModelName: name, Source: m.name, Tool: t.tool})
			}
		}
	}
	return entries
}

// reserved returns the names of host and built-in tools, those of the search
// included, and whose they are. A
// later host tool takes the name of an earlier one; the first built-in tool
// keeps its name.
func (r *Registry) reserved() map[string]owner {
	names := map[string]owner{
		model.ToolSearch: {searchSource, model.ToolSearch},
		callTool:         {searchSource, callTool},
	}
	for _, m := range r.members {
		if m.set != nil {
			continue
		}
		for _, t := range m.tools {
			names[t.name] = owner{m.name, t.name}
		}
	}
	for _, m := range r.members {
		if !m.builtin {
			continue
		}
		for _, t := range m.tools {
			name := plainName(m.name, t.name)
			if _, taken := names[name]; !taken && name != "" {
				names[name] = owner{m.name, t.name}
			}
		}
	}
	maps.Copy(r.owners, names)
	return names
}

// nameFor gives a tool its name. It is false for a tool that a host tool
// replaces.
func (r *Registry) nameFor(names map[string]owner, m *member, t namedTool) (string, bool) {
	self := owner{m.name, t.name}
	if m.set == nil {
		return t.name, true // of two, the snapshot takes the later
	}
	if m.builtin {
		name := plainName(m.name, t.name)
		if holder, taken := names[name]; taken && (holder == self || holder.source == hostSource) {
			return name, holder == self
		}
	}
	for attempt := 0; ; attempt++ {
		name := candidate(m.name, t.name, attempt)
		holder, taken := names[name]
		past, owned := r.owners[name]
		if name == "" || taken && holder != self || owned && past != self {
			continue
		}
		names[name], r.owners[name] = self, self
		return name, true
	}
}

// candidate returns the names that a tool can have, the best first, without end.
func candidate(source, tool string, attempt int) string {
	switch attempt {
	case 0:
		return plainName(source, tool)
	case 1:
		return qualifiedName(source, tool)
	}
	return hashedName(qualifiedName(source, tool), source, tool+strings.Repeat("\x00", attempt))
}

// admit reports whether the options let a tool into the table.
func (o Options) admit(name string) bool {
	named := func(pattern string) bool { return match(pattern, name) }
	return (len(o.Allowed) == 0 || slices.ContainsFunc(o.Allowed, named)) && !slices.ContainsFunc(o.Disallowed, named)
}

// match reports whether a name matches a pattern in which * stands for any
// characters.
func match(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, parts[0])
	if !ok || len(name) < len(parts[last]) || !strings.HasSuffix(name, parts[last]) {
		return false
	}
	name = name[:len(name)-len(parts[last])]
	for _, part := range parts[1:last] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}
