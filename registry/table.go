package registry

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// entries returns the named tools of all members, in order, without those that
// the options exclude. These still occupy their names, so that no other tool gets
// them.
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

// reserved returns the names of host and built-in tools, including those of the
// search, with their owners. Of host tools with one name the last gets it, of
// built-in tools the first.
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

// nameFor returns the name of a tool; false if a host tool replaces it.
func (r *Registry) nameFor(names map[string]owner, m *member, t namedTool) (string, bool) {
	self := owner{m.name, t.name}
	if m.set == nil {
		return t.name, true // of two, the snapshot uses the last
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

// candidate returns the possible names of a tool, best first; there is one for
// every attempt.
func candidate(source, tool string, attempt int) string {
	switch attempt {
	case 0:
		return plainName(source, tool)
	case 1:
		return qualifiedName(source, tool)
	}
	return hashedName(qualifiedName(source, tool), source, tool+strings.Repeat("\x00", attempt))
}

// admit reports whether the options include a tool.
func (o Options) admit(name string) bool {
	named := func(pattern string) bool { return match(pattern, name) }
	return (len(o.Allowed) == 0 || slices.ContainsFunc(o.Allowed, named)) && !slices.ContainsFunc(o.Disallowed, named)
}

// match reports whether a name matches a pattern, in which * matches any
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
